package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/draft"
	"github.com/lockchaos/lockchaos/internal/format"
)

// The answers that stand for an empty list.
const (
	noFault = "none"
	holdAll = "all"
)

func newInit(s streams) *cobra.Command {
	d := draft.Draft{}
	c := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a scenario of your own, after four questions",
		Long: `Asks which lock is tested, on which servers, under which fault, and what must hold, and writes a
commented scenario (by default scenario.yaml) for chaos run. A question whose flag is given is not
asked, so with all four flags nothing is read. An existing file is never overwritten.`,
		Example: `  chaos init
  chaos init mine.yaml --lock redlock --topology quorum --fault restart --holds all
  chaos init mine.yaml --lock 'exec:python3 client.py' --topology sentinel --fault failover --holds exclusion,fencing
  chaos run --scenario ./mine.yaml --dry-run       (check the file, print the plan)`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(fmt.Errorf("init takes one file, got %d arguments (see %s --help)", len(args), c.CommandPath()))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			path := "scenario.yaml"
			if len(args) == 1 {
				path = args[0]
			}
			return initScenario(c, s, path, d)
		},
	}
	for _, q := range questions() {
		c.Flags().String(q.flag, "", q.help)
		_ = c.RegisterFlagCompletionFunc(q.flag, completeNames(func() []string { return q.choices(d) }))
	}
	return c
}

// question is a question of chaos init, unless a flag answers it.
type question struct {
	flag, help string
	ask        string
	choices    func(draft.Draft) []string // after the answers before it
	fallback   func(draft.Draft) string   // for an empty answer; nil: there is none
	set        func(*draft.Draft, string)
}

func questions() []question {
	return []question{
		{
			flag: "lock", help: "the lock under test: a `NAME` of chaos list locks, or exec:COMMAND, your own client",
			ask: "Which lock is tested? exec:COMMAND is your own client (docs/reference/protocol.md); " +
				"locks of adapters: chaos adapters list",
			choices: func(draft.Draft) []string { return append(lockNames(), client.ExecPrefix) },
			set:     func(d *draft.Draft, answer string) { d.Lock = answer },
		},
		{
			flag: "topology", help: "the servers: a `NAME` of chaos list topologies",
			ask:      "Which servers?",
			choices:  draft.Draft.Topologies,
			fallback: func(d draft.Draft) string { return d.Topologies()[0] },
			set:      func(d *draft.Draft, answer string) { d.Topology = answer },
		},
		{
			flag: "fault", help: "the fault: a `NAME` of chaos list faults, or " + noFault,
			ask:      "Which fault?",
			choices:  func(d draft.Draft) []string { return append([]string{noFault}, d.Faults()...) },
			fallback: func(draft.Draft) string { return noFault },
			set:      func(d *draft.Draft, answer string) { d.Fault = strings.TrimPrefix(answer, noFault) },
		},
		{
			flag: "holds", help: "what must hold: `NAMES` of chaos list checkers, separated by commas, or " + holdAll,
			ask: "What must hold? Several names are separated by commas; " + holdAll +
				": whatever the run tests",
			choices: func(draft.Draft) []string {
				names := format.Texts(checker.Catalog(), func(r checker.Spec) checker.Property { return r.Name })
				return append([]string{holdAll}, names...)
			},
			fallback: func(draft.Draft) string { return holdAll },
			set: func(d *draft.Draft, answer string) {
				d.Holds = strings.FieldsFunc(strings.TrimPrefix(answer, holdAll), func(r rune) bool { return r == ',' || r == ' ' })
			},
		},
	}
}

// initScenario completes d, from flags and from standard input, and writes it to a new file.
func initScenario(c *cobra.Command, s streams, path string, d draft.Draft) error {
	base := filepath.Base(path)
	if ext := filepath.Ext(base); ext != ".yaml" && ext != ".yml" {
		return usage(fmt.Errorf("%s: a scenario is a file that ends in .yaml or .yml", path))
	}
	if _, err := os.Lstat(path); err == nil {
		return usage(fmt.Errorf("%s exists; chaos init does not overwrite files", path))
	}
	d.Name = strings.TrimSuffix(base, filepath.Ext(base))
	in := bufio.NewReader(s.in)
	for i, q := range questions() {
		if flag := c.Flags().Lookup(q.flag); flag.Changed {
			q.set(&d, flag.Value.String())
			if err := d.Check(); err != nil {
				return usage(err)
			}
			continue
		}
		s.note("%d/%d  %s\n%s", i+1, len(questions()), q.ask, q.listed(d))
		if err := q.answer(s, in, &d); err != nil {
			return err
		}
	}
	if err := create(path, d.Text()); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s written. Next:\n  chaos run --scenario %s --dry-run\n  chaos run --scenario %[2]s --expect\n",
		path, format.ShellWord(path))
	return nil
}

// listed are the choices as text, without the locks of adapters, which are many.
func (q question) listed(d draft.Draft) string {
	ofAdapter := func(name string) bool { return strings.Contains(name, "/") }
	return strings.Join(slices.DeleteFunc(q.choices(d), ofAdapter), ", ")
}

// answer reads lines until one is an answer.
func (q question) answer(s streams, in *bufio.Reader, d *draft.Draft) error {
	for {
		prompt := "> "
		if q.fallback != nil {
			prompt = fmt.Sprintf("[%s] > ", q.fallback(*d))
		}
		fmt.Fprint(s.err, prompt)
		text, err := in.ReadString('\n')
		text = strings.TrimSpace(text)
		if err != nil && (text == "" || !errors.Is(err, io.EOF)) {
			return usage(fmt.Errorf("standard input ended before the question was answered (%w): answer it with --%s; "+
				"nothing was written", err, q.flag))
		}
		switch {
		case text == "" && q.fallback == nil:
			s.note("this question has no default: enter a name")
			continue
		case text == "":
			text = q.fallback(*d)
		}
		next := *d
		q.set(&next, text)
		if err = next.Check(); err == nil {
			*d = next
			return nil
		}
		s.note("%v", err)
	}
}

// create writes a file that must not exist yet.
func create(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return usage(fmt.Errorf("%s exists; chaos init does not overwrite files", path))
	}
	if err != nil {
		return fmt.Errorf("writing the scenario: %w", err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(path))
	}
	return nil
}
