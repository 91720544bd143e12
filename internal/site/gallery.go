package site

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// shown is a run of the gallery. Its seed is fixed, so simulated servers repeat the same run every time.
type shown struct {
	scenario, title string
	seed            int
}

func galleryRuns() []shown {
	return []shown{
		{"failover", "A failover", 7},
		{"gc-pause", "A pause of the holder", 7},
		{"reply-lost-acquire", "A lost reply", 7},
		{"redlock-restart-empty", "RedLock, and a master that restarts empty", 7},
		{"semaphore-failover", "A semaphore", 7},
		{"readers-writer-pause", "Readers and a writer", 7},
		{"zk-gc-pause", "ZooKeeper", 7},
		{"leader-pause", "Leader election", 7},
	}
}

// gallery makes the runs, with their reports and pictures, and the page that shows them.
func (o Options) gallery() error {
	var b strings.Builder
	b.WriteString("# Gallery\n\nEach picture shows a run on simulated servers that was made when this site was built. " +
		"Open its report, click the timeline, and walk with the arrow keys from event to event.\n")
	for _, s := range galleryRuns() {
		sentence, err := o.show(s)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n![Holds of the lock over time: %s](%s.svg)\n\n"+
			"<a href=\"%s/report.html\">Open the report of %s</a>\n%s", s.title, cell(sentence), s.title, s.scenario,
			s.scenario, s.scenario, command(s.line()))
	}
	return o.page("gallery/index", b.String())
}

func (s shown) line() string {
	return fmt.Sprintf("chaos run --scenario %s --backend sim --seed %d", s.scenario, s.seed)
}

// show makes a run and keeps its report and its picture. It returns the sentence of the verdict.
func (o Options) show(s shown) (sentence string, err error) {
	runs, err := os.MkdirTemp("", "lockchaos-site-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(runs)) }()
	args := append(strings.Fields(s.line())[1:], "--out", runs, "--json", "--expect")
	out, err := exec.Command(o.Chaos, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s did not end as its scenario expects: %w", s.line(), err)
	}
	var run struct {
		Path  string `json:"path"`
		Story struct {
			Sentence string `json:"sentence"`
		} `json:"story"`
	}
	if err := json.Unmarshal(out, &run); err != nil {
		return "", err
	}
	picture, err := o.output("report", run.Path, "--format", "svg")
	if err != nil {
		return "", err
	}
	if err := write(filepath.Join(o.Pages, "gallery", s.scenario+".svg"), string(picture)); err != nil {
		return "", err
	}
	// The report links to the files beside it.
	if err := os.CopyFS(filepath.Join(o.Extra, "gallery", s.scenario), os.DirFS(run.Path)); err != nil {
		return "", err
	}
	return run.Story.Sentence, nil
}
