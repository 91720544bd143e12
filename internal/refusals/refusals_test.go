package refusals

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/clientfailures"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// linksOf are the gates of a cluster that does nothing else: replies by caller.
type linksOf struct {
	replies map[string]cluster.Traffic
}

func (linksOf) SetRule(cluster.Link, cluster.Direction, cluster.Rule) error { return nil }

func (l linksOf) Traffic(link cluster.Link, _ cluster.Direction) (sum cluster.Traffic, err error) {
	for caller, t := range l.replies {
		if link.From == cluster.Any || link.From == caller {
			sum.Add(t)
		}
	}
	return sum, nil
}

// TestRefusals: clients that get nothing but refusals are named, whatever they report, and a run with no other client
// ends early; a client that authenticates after a refusal is correct.
func TestRefusals(t *testing.T) {
	refused, late := cluster.Traffic{Refused: 4}, cluster.Traffic{Refused: 4, Accepted: true}
	for name, c := range map[string]struct {
		replies map[string]cluster.Traffic
		named   string // the start of the clause
		early   bool
	}{
		"all are refused": {
			map[string]cluster.Traffic{"client:0": refused, "client:1": refused}, "client 0 was refused by a server (NOAUTH)", true,
		},
		"none uses its source": {
			map[string]cluster.Traffic{cluster.UnknownClient: refused}, "a client that does not use its source was refused", true,
		},
		"one is refused":              {map[string]cluster.Traffic{"client:0": late, "client:1": refused}, "client 1 was refused", false},
		"refused before the password": {map[string]cluster.Traffic{"client:0": late, "client:1": late}, "", false},
		"once":                        {map[string]cluster.Traffic{"client:0": {Refused: 1}}, "client 0 was refused", false},
		"none":                        {nil, "", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var text bytes.Buffer
			began := time.Now()
			clock := func() time.Duration { return time.Since(began) }
			record, unable := history.NewRecorder(&text, clock), make(chan error, 1)
			noted := map[string]bool{}
			w := Watch{
				Links: linksOf{replies: c.replies}, Clients: 2, Clock: clock, Granted: func() bool { return false },
				Note: func(caller, text string) {
					if !noted[caller] {
						noted[caller] = true
						v := &history.FaultValue{Phase: history.Noted, Target: caller, Detail: text}
						record.Note(history.Nemesis, history.NoPassword, "", &history.Value{Fault: v})
					}
				},
				End: func(err error) { unable <- err },
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			w.Run(ctx)
			ended := clock()
			select {
			case err := <-unable:
				if !c.early || ended > 3*time.Second || !errors.Is(err, cluster.ErrEnvironment) {
					t.Errorf("%s: ended after %v: %v", name, ended, err)
				}
			default:
				if c.early {
					t.Errorf("%s: the run did not end early", name)
				}
			}
			h, err := history.ReadAll(&text, "test")
			if err != nil {
				t.Fatal(err)
			}
			clauses := fmt.Sprint(clientfailures.Describe(h))
			if c.named == "" && clauses != "[]" || !strings.Contains(clauses, c.named) ||
				len(noted) == 0 != (c.named == "") {
				t.Errorf("%s: %s", name, clauses)
			}
		})
	}
}
