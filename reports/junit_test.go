package reports

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/reports/export"
)

// TestJUnitIsOneCase: expected is passed, unexpected a failure, a broken run an error.
func TestJUnitIsOneCase(t *testing.T) {
	for want, change := range map[string]func(*synth){
		`failures="0" skipped`:    func(*synth) {},
		`failures="1" skipped`:    func(s *synth) { s.m.Expect["exclusion"] = "holds" },
		`failures="0" errors="1"`: func(s *synth) { s.m.State, s.m.Failure = rundir.Broken, "no redis-server" },
	} {
		s := failoverRun("orders")
		change(s)
		out := render(t, s.load(t), "junit")
		for _, part := range []string{`tests="1" ` + want, `<property name="seed" value="42">`,
			`name="version.redis" value="7.0.15"`} {
			if !strings.Contains(out, part) {
				t.Errorf("%s is missing in\n%s", part, out)
			}
		}
	}
}

// TestJUnitBeforeTheStart: a run that could not be started is an error, with its properties.
func TestJUnitBeforeTheStart(t *testing.T) {
	var b bytes.Buffer
	m := rundir.Manifest{Scenario: "failover", Backend: "process", Seed: 7}
	if err := export.WriteJUnitError(&b, &m, errors.New("no \x1bredis-server")); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`errors="1"`, `name="failover"`, `<error message="no`, `name="seed" value="7"`} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("%s is missing in\n%s", part, b.String())
		}
	}
	if err := wellFormed(b.String()); err != nil {
		t.Error(err)
	}
}
