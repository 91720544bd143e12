package mutants

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Switch is the environment variable that names the row that a program of [Build] applies.
const Switch = "LOCKCHAOS_MUTANT"

// Programs are builds of cmd/chaos.
type Programs struct {
	Root   string // of the repository
	Dir    string // of the programs
	shared string // has all rows that a switch can choose
	alone  map[string]bool
}

// Build builds one program that has every row which changes a script or a function, chosen by [Switch]. The others
// are built when [Programs.Command] asks for them.
func Build(ctx context.Context, root, dir string, rows []Row) (*Programs, error) {
	p := &Programs{Root: root, Dir: dir, shared: filepath.Join(dir, "chaos"), alone: map[string]bool{}}
	files, alone, err := switched(filepath.Join(root, "lock"), rows)
	if err != nil {
		return nil, err
	}
	for _, r := range alone {
		p.alone[r.Name] = true
	}
	return p, p.build(ctx, p.shared, files)
}

// Command is the path of a program with the row applied, and its environment. The zero row is no change.
func (p *Programs) Command(ctx context.Context, r Row) (program, env string, err error) {
	if !p.alone[r.Name] {
		return p.shared, Switch + "=" + r.Name, nil
	}
	source, err := os.ReadFile(filepath.Join(p.Root, "lock", r.File))
	if err != nil {
		return "", "", fmt.Errorf("planting %s: %w", r.Name, err)
	}
	text, err := r.Apply(string(source))
	if err != nil {
		return "", "", err
	}
	program = filepath.Join(p.Dir, r.Name)
	err = p.build(ctx, program, map[string]string{r.File: text})
	return program, Switch + "=", err
}

// build builds cmd/chaos with files in place of package lock's.
func (p *Programs) build(ctx context.Context, program string, files map[string]string) error {
	dir := filepath.Join(filepath.Dir(program), "_"+filepath.Base(program)) // go test ./... skips directories with _
	replace := map[string]string{}
	for name, text := range files {
		to := filepath.Join(dir, strings.ReplaceAll(name, "/", "-"))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("building a mutant: %w", err)
		}
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			return fmt.Errorf("building a mutant: %w", err)
		}
		replace[filepath.Join(p.Root, "lock", name)] = to
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(program+".json", overlay, 0o644)
	}
	if err != nil {
		return fmt.Errorf("building a mutant: %w", err)
	}
	_, err = command(ctx, p.Root, nil, nil,
		"go", "build", "-buildvcs=false", "-overlay", program+".json", "-o", program, "./cmd/chaos")
	return err
}
