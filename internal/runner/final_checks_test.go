package runner

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// answering is a client that answers acquires with the codes of a list, one after the other, and then grants them.
type answering struct {
	client.Client
	codes []string
	asked int
}

func (a *answering) Do(_ context.Context, r client.Request) (client.Reply, error) {
	if r.Op != history.Acquire {
		return client.Reply{Type: "ok"}, nil
	}
	if a.asked++; a.asked > len(a.codes) {
		return client.Reply{Type: "ok"}, nil
	}
	code := a.codes[a.asked-1]
	if code == "unknown" {
		return client.Reply{Type: "info", Code: code}, nil
	}
	code, text, _ := strings.Cut(code, " ")
	return client.Reply{Type: "fail", Code: code, Error: text}, nil
}

// A probe asks again while servers refuse for reasons of their own, and takes an answer about the lock as it is.
func TestAProbeWaitsForServersNotForLocks(t *testing.T) {
	many := func(code string, n int) (codes []string) {
		for range n {
			codes = append(codes, code)
		}
		return codes
	}
	for _, test := range []struct {
		name    string
		codes   []string
		outcome history.Type
		asked   int
	}{
		{"granted", nil, history.OK, 1},
		{"held", []string{"held"}, history.Fail, 1},
		{"waited in vain", []string{"timeout"}, history.Fail, 1},
		{"no replica yet", []string{"too-few-replicas", "too-few-replicas"}, history.OK, 3},
		{"no replica yet, then held", []string{"too-few-replicas", "held"}, history.Fail, 2},
		{"no replica for the server", []string{"timeout acquire lock: NOREPLICAS Not enough", "held"}, history.Fail, 2},
		{"never a replica", many("too-few-replicas", 1000), history.Info, 32},
		{"any other refusal", []string{"error"}, history.Fail, 1},
		{"unknown once", []string{"unknown"}, history.OK, 2},
		{"never known", many("unknown", 1000), history.Info, maxUnknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &answering{codes: test.codes}
				s := &stage{run: &run{}, clients: []client.Client{a}}
				outcome, _ := s.probeUntilSettled(t.Context(), 0, "k")
				if outcome != test.outcome || a.asked != test.asked {
					t.Errorf("%v after %d questions, want %v after %d", outcome, a.asked, test.outcome, test.asked)
				}
			})
		})
	}
}
