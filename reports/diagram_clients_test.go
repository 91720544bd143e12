package reports

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/testkit/browser"
	"github.com/lockchaos/lockchaos/reports/diagram"
)

// TestDiagramKnowsRequestsAndModes: what a client waits for, has forgotten, or may do with its hold.
func TestDiagramKnowsRequestsAndModes(t *testing.T) {
	late := failoverRun("orders")
	for k, phase := range []history.Phase{history.Injected, history.TookEffect} {
		late.fault(100+10*float64(k), "replication-lag", history.FaultValue{ID: 20, Phase: phase, Target: "n3>n1"})
		late.fault(3000+10*float64(k), "restart", history.FaultValue{ID: 21, Phase: phase, Target: "n3"})
		late.fault(7000+10*float64(k), "restart", history.FaultValue{ID: 22, Phase: phase, Target: "n3"})
		late.fault(1950+10*float64(k), "client-restart", history.FaultValue{ID: 23, Phase: phase, Target: "client:4"})
	}
	late.add(1961, history.Info, 4, history.Crash, nil)
	late.fault(2000, "client-restart", history.FaultValue{ID: 23, Phase: history.Healed, Target: "client:4"})
	late.number()
	ensemble := failoverRun("orders")
	ensemble.m.Topology = cluster.Topology{Kind: cluster.ZooKeeper, Members: 3}
	advisory := failoverRun("orders")
	advisory.m.Topology = cluster.Topology{Kind: cluster.Postgres, Replicas: 2}
	shared := func(values ...history.Value) *synth {
		s := newSynth("shared", "orders", 9, cluster.Topology{Kind: cluster.Quorum, Masters: 11}, 11)
		for i, v := range values {
			v.Owner = fmt.Sprintf("own-%d-aaaa", i)
			s.add(10, history.Invoke, history.Process(i), history.Acquire, &v)
			s.add(20, history.OK, history.Process(i), history.Acquire, &v)
		}
		for i := range 9 {
			s.add(30, history.Invoke, history.Process(i), history.Work, &history.Value{})
		}
		s.number()
		return s
	}
	const unsampled = "n1, n2, n3, n4, n5, n6, n7, n8 and n9 not sampled · records of the lock not sampled: nodes were " +
		"not sampled · "
	planted{
		{"a request failed", failoverRun("orders"), 1900, "n1 down · n2 and n3 replica, key absent · " +
			"client 3 believes it holds · client 1 waits · client 4 asked, outcome unknown"},
		{"a client restarted", late, 1970, "n1 down · n2 and n3 replica, key absent · the link of n3 to n1: " +
			"replication-lag · client 3 believes it holds · client 1 waits · client 4 dead"},
		{"and forgot its request", late, 2010, "n1 down · n2 and n3 replica, key absent · the link of n3 to n1: " +
			"replication-lag · client 3 believes it holds · client 1 waits"},
		{"up again", late, 3390, "n1 down · n2 master, key: client 1 · n3 replica, key: absent → client 1 (restart) · "},
		{"an ensemble", ensemble, 200, "n1 leader, lock: client 0 · n2 and n3 follower, lock: client 0 · " +
			"client 3 and client 2 wait · client 0 believes it holds"},
		{"a database", advisory, 200, "n1 master, lock: client 0 · n2 and n3 replica, lock: client 0 · "},
		{"modes", shared(history.Value{Mode: "read"}, history.Value{Mode: "read"}, history.Value{Mode: "write"}), 40,
			unsampled + "client 0 and client 1 believe they hold, reading · client 2 believes it holds, writing · " +
				"2 more nodes and 3 more clients not drawn"},
		{"permits", shared(history.Value{Permits: 1}, history.Value{Permits: 2}, history.Value{Permits: 2}), 40, unsampled +
			"client 0 believes it holds, 1 permit · client 1 and client 2 believe they hold, 2 permits each · 2 more nodes"},
	}.check(t)
}

// TestDiagramOfOtherClients: another violation moves the cards to its clients, with their states. The fault of a client
// without a card is in the sentence.
func TestDiagramOfOtherClients(t *testing.T) {
	s := twoKeyRun()
	s.m.Clients = 9
	for i, e := range s.events {
		switch {
		case e.Value != nil && e.Value.Fault != nil:
			s.events[i].Time, e.Value.Fault.Target = ms(500), "client:7"
		case e.Process < 2: // a client of the second violation
			s.events[i].Process += 7
		}
	}
	s.key = "orders"
	for c := range 7 {
		from := 4410 + 10*float64(c)
		s.hold(history.Process(c), fmt.Sprintf("own-%d-ffff", c), 9, holdTimes{4400, from, from + 5, 500})
	}
	s.number()
	for i := range s.j.Results[0].Violations {
		v := &s.j.Results[0].Violations[i]
		if v.Clients[0] == 0 {
			v.Clients = []int{7, 8}
		}
		for k, owner := range v.Owners {
			v.Events[k] = s.find(history.OK, history.Process(v.Clients[k]), history.Acquire, owner)
		}
	}
	r := s.load(t)
	d := browser.Start(t)
	d.Open(t, render(t, r, "html"), browser.Options{})
	var seen []string
	d.Run(t, `const all = [];
		for (let n = 0; n < 3; n++) {
			await frame();
			all.push($('#state').textContent);
			press($('#picture .wide'), 'ArrowDown');
		}
		return all`, &seen)
	stock, orders := sceneOf(r), diagram.New(r, "orders", []int{7, 8})
	first := stock.At(ms(3600)).Sentence()
	if diff := cmp.Diff([]string{first, orders.At(ms(700)).Sentence(), first}, seen); diff != "" {
		t.Error(diff)
	}
	for i, want := range []string{" · client 7 paused · ", " · client 7 paused, believes it holds, validity over · "} {
		if !strings.Contains(seen[i], want) || strings.Count(seen[i], "client 7") != 1 {
			t.Errorf("%q, want %q", seen[i], want)
		}
	}
}

// TestUnknownOutcomeHasItsTime: an outcome is unknown from when the client learned it, not from its request on.
func TestUnknownOutcomeHasItsTime(t *testing.T) {
	s := failoverRun("orders")
	r := s.load(t)
	at, text, ok := r.Describe(s.find(history.Info, 4, history.Acquire, ""))
	if at != ms(1900) || !strings.Contains(text, "unknown outcome") || !ok {
		t.Errorf("%v: %q", at, text)
	}
	d := browser.Start(t)
	d.Open(t, render(t, r, "html"), browser.Options{})
	var row string
	d.Run(t, `$('#by-client').value = '4';
		$('#by-client').dispatchEvent(new Event('change'));
		await frame();
		return [...$('#ops .rows [role=row]').children].map((c) => c.textContent).join('|')`, &row)
	if want := "0.950 s|client 4|acquire|orders|info|950 ms|"; !strings.HasPrefix(row, want) {
		t.Errorf("the row of the request is %q, want %q", row, want)
	}
}
