// Package page writes the HTML page of a run: a self-contained file with the story, the timeline, tables, and the
// events that it cites.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/stats"
	"github.com/lockchaos/lockchaos/reports/diagram"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/timeline"
	"github.com/lockchaos/lockchaos/scenarios"
)

//go:embed templates
var templates embed.FS

// Limits of the page. What exceeds them is counted on the page, never dropped
// silently. Violations have no limit here: checkers keep the worst and count all.
const (
	maxUnknownRows = 200
	maxClientRows  = 1000
	maxFaultRows   = 500
	MaxBytes       = 5_000_000
)

// docs is where the page links for the terms that it uses.
const docs = "https://github.com/lockchaos/lockchaos/blob/main/docs/explanation/"

// view is the data of the template.
type view struct {
	Docs       string
	Style      template.CSS
	Script     template.JS
	ScriptHash template.HTMLAttr

	Class, Word, Shape string
	Harm, Expected     string
	Title, Summary     string
	Production         string
	Seed               uint64
	Missing            []string
	Repeat, Source     string
	Essentials         []field
	HistoryOnly        bool // a history without a run directory

	picture         *timeline.Timeline
	Timeline        template.HTML
	TimelineNotes   []string
	Sampling        string // how often nodes were sampled; empty if they were not
	SamplingTooWide bool   // too rarely near a fault
	Jump            bool
	Story           evidence.Story
	Shown           evidence.Step // which the diagram shows first
	Diagram         template.HTML // of the nodes and the clients; empty: there is no instant to show
	DiagramText     string
	Moving          template.JS // the data of its script
	Issue           string      // the run in Markdown
	Overview        template.HTML

	Faults         []faultRow
	MoreFaults     string
	Notes          []string
	Properties     []propertyRow
	NotApplicable  []field
	Violations     []violationRow
	ViolationNotes []string
	Unknown        []unknownRow
	MoreUnknown    string
	Thresholds     []checker.Comparison
	Clients        []evidence.ClientStats
	MoreClients    string
	Latencies      []stats.Latency
	Config         []field
	Plan           []scenarios.Step
	YAML, SeedNote string
	Files          []string
	Problems       []string
	Cited          map[int]string // lines of history.jsonl by index
}

type field struct{ Name, Value string }

// Write writes report.html, which needs no other file.
func Write(r *evidence.Run, w io.Writer) error {
	t, err := template.New("page.tmpl").Funcs(template.FuncMap{
		"client": evidence.ClientName, "codes": Codes,
		"color":    func(client int) string { return timeline.Palette(timeline.ColorOf(r, client)) },
		"duration": format.Duration, "instant": format.Instant,
		"words": format.ShellWords,
	}).ParseFS(templates, "templates/page.tmpl")
	if err != nil {
		return fmt.Errorf("parsing the page template: %w", err)
	}
	p, err := newPage(r)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return fmt.Errorf("rendering the page: %w", err)
	}
	before, after, _ := strings.Cut(format.Printable(r.Named(b.String(), timeline.Escape)), dataPlace)
	data, err := timeline.Browse(r, p.picture.D.Window, p.picture.Key, MaxBytes-len(before)-len(after)-len(dataPlace))
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, before+strings.Replace(dataPlace, "><", ">"+data+"<", 1)+after)
	return err
}

// dataPlace is where the page has the data of its script: last, so that everything else is seen first.
const dataPlace = `<script type="text/plain" id="data"></script>`

func newPage(r *evidence.Run) (*view, error) {
	style, err := templates.ReadFile("templates/page.css")
	if err != nil {
		return nil, fmt.Errorf("reading the page style: %w", err)
	}
	script, err := templates.ReadFile("templates/page.js")
	if err != nil {
		return nil, fmt.Errorf("reading the page script: %w", err)
	}
	drawing, look, err := diagram.Assets()
	if err != nil {
		return nil, err
	}
	style, script = append(look, style...), append(drawing, script...)
	p := &view{Docs: docs, Style: template.CSS(style), Script: template.JS(script),
		ScriptHash: template.HTMLAttr(hashOf(script))}
	p.header(r)
	p.story(r)
	if err := p.diagram(r); err != nil {
		return nil, err
	}
	p.tables(r)
	p.configuration(r)
	p.cited(r)
	return p, nil
}

// hashOf identifies a script in a Content-Security-Policy.
func hashOf(script []byte) string {
	sum := sha256.Sum256(script)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func (p *view) header(r *evidence.Run) {
	m := &r.Manifest
	p.Word = strings.ToUpper(string(r.Verdict()))
	p.Class, p.Shape = timeline.VerdictStyle(r.Verdict())
	if r.Verdict() == checker.Unsafe {
		p.Harm = string(r.Judgement.Class)
	}
	if len(m.Expect) > 0 && r.Judged && r.Verdict() != checker.NotRun {
		p.Expected = "as the scenario expects"
		if !evidence.AsExpected(r) {
			p.Expected = "not as the scenario expects"
		}
	}
	p.Title, p.Summary, p.Seed, p.Missing, p.Repeat = r.Title(), m.Summary, m.Seed, r.Missing, m.Repeat
	if ended := evidence.StateText(m); ended != "" {
		p.Missing = append([]string{ended}, p.Missing...)
	}
	p.Production = evidence.Production(r)
	p.Source = "this history"
	if r.Dir != nil {
		p.Source = r.Dir.ID
	}
	p.HistoryOnly = r.HistoryOnly()
	if p.HistoryOnly {
		p.Source = r.File
		p.Essentials = nonEmpty([]field{{"Clients", fmt.Sprint(len(r.PerClient()))},
			{"Keys", format.Number(len(r.History.Keys))}, {"Events", format.Number(r.History.Events)},
			{"Judged in", format.Duration(r.Judgement.Took)}})
		return
	}
	p.Essentials = nonEmpty([]field{
		{"Lock", m.Lock}, {"Topology", topologyText(r)}, {"Clients", fmt.Sprint(r.History.Clients)}, {"Workload", m.Workload},
		{"Backend", m.Backend}, {"Seed", fmt.Sprint(m.Seed)}, {"Started", timeText(m.Started)},
		{"Events", format.Number(r.History.Events)}, {"Judged in", format.Duration(r.Judgement.Took)},
	})
}

// nonEmpty drops fields without a value.
func nonEmpty(all []field) []field {
	return slices.DeleteFunc(all, func(p field) bool { return p.Value == "" || p.Value == "0 s" })
}

func (p *view) story(r *evidence.Run) {
	t := timeline.New(r)
	p.Timeline, p.TimelineNotes = t.HTML()
	p.Overview = timeline.Overview(r, t.D.Window)
	p.picture = t
	if r.Sampling != nil {
		p.Sampling, p.SamplingTooWide = r.Sampling.Text(), r.Sampling.Wide()
	}
	p.Jump = r.Worst != nil
	p.Story = r.Story
}

// diagram draws the nodes and the clients at the step at which the violation began, or else at the first one.
func (p *view) diagram(r *evidence.Run) error {
	if len(p.Story.Steps) == 0 {
		p.Issue = issueOf(r, p.Shown, nil)
		return nil
	}
	p.Shown = p.Story.Steps[0]
	if r.Worst != nil {
		if s := evidence.LastOf(p.Story.Steps, func(s *evidence.Step) bool { return s.Time <= r.Worst.Start }); s != nil {
			p.Shown = *s
		}
	}
	scene := diagram.New(r, p.picture.Key, p.picture.Clients())
	frame := scene.At(p.Shown.Time)
	data, err := scene.Data()
	p.Issue = issueOf(r, p.Shown, frame)
	p.Diagram, p.DiagramText, p.Moving = scene.SVG(frame), frame.Sentence(), template.JS(data)
	return err
}

// Codes escapes text and turns `words in backquotes` into code.
func Codes(s string) template.HTML {
	var b strings.Builder
	parts := strings.Split(s, "`")
	for i, part := range parts {
		if i%2 == 1 && i < len(parts)-1 {
			b.WriteString("<code>" + timeline.Escape(part) + "</code>")
			continue
		}
		if i%2 == 1 {
			b.WriteString("`")
		}
		b.WriteString(timeline.Escape(part))
	}
	return template.HTML(b.String())
}

func (p *view) cited(r *evidence.Run) {
	p.Cited = r.Cited
	for _, problem := range r.History.Problems {
		where := ""
		if problem.Index >= 0 {
			where = fmt.Sprintf(" at event %d", problem.Index)
		}
		p.Problems = append(p.Problems, fmt.Sprintf("Problem in the history%s: %s.", where, problem.Text))
	}
	if r.Dir == nil {
		return
	}
	for _, name := range []string{rundir.HistoryFile, rundir.WitnessFile, rundir.ManifestFile, rundir.VerdictFile,
		rundir.LinearFile} {
		p.file(r, name)
	}
	for _, spec := range timeline.Plots() {
		p.file(r, spec.Name+".svg")
	}
	for _, name := range r.Dir.Logs() {
		p.Files = append(p.Files, rundir.LogsDir+"/"+name)
	}
}

// file links a file of the run directory, if it exists.
func (p *view) file(r *evidence.Run, name string) {
	if r.Dir.Has(name) {
		p.Files = append(p.Files, name)
	}
}
