package reports

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/lockchaos/lockchaos/internal/rundir"
)

// load writes the run to disk and loads it.
func (s *synth) load(t testing.TB) *Run {
	t.Helper()
	d, err := rundir.Create(t.TempDir(), s.m.Scenario, s.m.Seed, s.m.Started)
	if err != nil {
		t.Fatal(err)
	}
	s.m.ID = d.ID
	var lines, watched bytes.Buffer
	for i := range s.events {
		lines.Write(append(s.events[i].AppendJSON(nil), '\n'))
	}
	enc := json.NewEncoder(&watched)
	for i := range s.samples {
		if err := enc.Encode(s.samples[i]); err != nil {
			t.Fatal(err)
		}
	}
	s.j.Events, s.j.Spans = len(s.events), len(s.events)/2
	for _, err := range []error{d.WriteManifest(s.m),
		d.WriteFile(rundir.HistoryFile, lines.Bytes()), d.WriteFile(rundir.WitnessFile, watched.Bytes()),
		d.WriteVerdict(s.j), d.WriteFile(rundir.ReportFile, nil)} { // formats name the report if there is one
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := Load(d)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
