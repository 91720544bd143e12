package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lockchaos/lockchaos/internal/explore"
)

// Coverage is how much of package lock the harness executes without any test of the package.
type Coverage struct {
	Percent   float64  `json:"percent"` // of statements
	Seeds     int      `json:"seeds"`   // of each scenario
	Scenarios int      `json:"scenarios"`
	Unreached []string `json:"unreached,omitempty"` // functions
}

// Import paths. A program whose main package is not covered writes no coverage when it exits.
const (
	lockPackage = "github.com/lockchaos/lockchaos/lock"
	mainPackage = "github.com/lockchaos/lockchaos/cmd/chaos"
)

// covered are package lock and the packages that only it imports.
func covered() string {
	all := []string{lockPackage}
	for _, name := range []string{"random", "tasks", "wait", "wire"} {
		all = append(all, lockPackage+"/internal/"+name)
	}
	return strings.Join(all, ",")
}

// Cover explores every simulated scenario of every kind with so many seeds and returns the executed parts of package
// lock.
func Cover(ctx context.Context, root, dir string, all Targets, seeds int) (Coverage, error) {
	program, data := filepath.Join(dir, "chaos-cover"), filepath.Join(dir, "coverage")
	if err := os.RemoveAll(data); err != nil {
		return Coverage{}, fmt.Errorf("measuring coverage: %w", err)
	}
	if err := os.MkdirAll(data, 0o755); err != nil {
		return Coverage{}, fmt.Errorf("measuring coverage: %w", err)
	}
	_, err := command(ctx, root, nil, nil,
		"go", "build", "-buildvcs=false", "-cover", "-coverpkg="+covered()+","+mainPackage, "-o", program,
		"./cmd/chaos")
	if err != nil {
		return Coverage{}, err
	}
	c := Coverage{Seeds: seeds}
	jobs, err := c.jobs(all)
	if err != nil {
		return Coverage{}, err
	}
	if _, err := command(ctx, root, []string{"GOCOVERDIR=" + data}, jobs, program, "worker"); err != nil {
		return Coverage{}, err
	}
	profile := filepath.Join(dir, "coverage.txt")
	_, err = command(ctx, root, nil, nil,
		"go", "tool", "covdata", "textfmt", "-pkg="+covered(), "-i="+data, "-o="+profile)
	if err != nil {
		return Coverage{}, err
	}
	functions, err := command(ctx, root, nil, nil, "go", "tool", "cover", "-func="+profile)
	if err != nil {
		return Coverage{}, err
	}
	if err := c.read(functions); err != nil {
		return Coverage{}, err
	}
	if c.Percent == 0 {
		return Coverage{}, errors.New("measuring coverage: the program recorded none")
	}
	return c, nil
}

// jobs are the runs, as a worker reads them.
func (c *Coverage) jobs(all Targets) ([]byte, error) {
	var jobs bytes.Buffer
	seen := map[string]bool{}
	for _, kind := range kinds() {
		for _, t := range all[kind] {
			if seen[t.String()] || t.drawn != nil || t.OnServers() {
				continue
			}
			seen[t.String()] = true
			c.Scenarios++
			for seed := range c.Seeds {
				job := explore.Job{Scenario: t.scenario.YAML(), Seed: uint64(seed) + 1}
				if err := json.NewEncoder(&jobs).Encode(job); err != nil {
					return nil, fmt.Errorf("measuring coverage: %w", err)
				}
			}
		}
	}
	return jobs.Bytes(), nil
}

// read reads the output of go tool cover -func: file and line, function, percentage.
func (c *Coverage) read(functions []byte) error {
	for line := range strings.Lines(string(functions)) {
		words := strings.Fields(line)
		if len(words) != 3 {
			continue
		}
		percent, err := strconv.ParseFloat(strings.TrimSuffix(words[2], "%"), 64)
		if err != nil {
			return fmt.Errorf("reading coverage: %w", err)
		}
		file, _, _ := strings.Cut(strings.TrimPrefix(words[0], lockPackage+"/"), ":")
		switch {
		case words[0] == "total:":
			c.Percent = percent
		case percent == 0:
			c.Unreached = append(c.Unreached, file+" "+words[1])
		}
	}
	slices.Sort(c.Unreached)
	return nil
}

// command runs a program in root and returns its output.
func command(ctx context.Context, root string, env []string, in []byte, words ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.Dir, c.Env, c.Stdin = root, append(os.Environ(), env...), bytes.NewReader(in)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("running %s: %w\n%s", strings.Join(words, " "), err, errs.Bytes())
	}
	return out.Bytes(), nil
}
