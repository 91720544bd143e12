package cluster

import (
	"strings"
	"testing"
)

func TestSentinelQuorum(t *testing.T) {
	for _, test := range []struct {
		topology Topology
		want     int    // the quorum
		err      string // or why it is refused
	}{
		{Topology{Kind: Sentinel}, 2, ""},
		{Topology{Kind: Sentinel, Sentinels: 5}, 3, ""},
		{Topology{Kind: Sentinel, SentinelQuorum: 1}, 1, ""},
		{Topology{Kind: Sentinel, SentinelQuorum: 3}, 3, ""},
		{Topology{Kind: Sentinel, SentinelQuorum: 4}, 0, "from 1 to the number of sentinels"},
		{Topology{Kind: Sentinel, SentinelQuorum: -1}, 0, "from 1 to the number of sentinels"},
		{Topology{Kind: Replicated, SentinelQuorum: 1}, 0, "leave sentinel_quorum out"},
	} {
		full := test.topology.Defaults()
		err := full.Validate()
		switch {
		case (err == nil) != (test.err == ""), err != nil && !strings.Contains(err.Error(), test.err):
			t.Errorf("%+v: %v, want %q", test.topology, err, test.err)
		case err == nil && full.SentinelQuorum != test.want:
			t.Errorf("%+v: quorum %d, want %d", test.topology, full.SentinelQuorum, test.want)
		}
	}
}

// TestStandby: PostgreSQL has one standby at most, and commits wait only for one that there is.
func TestStandby(t *testing.T) {
	for replicas, valid := range map[int]bool{-1: false, 0: true, 1: true, 2: false} {
		pg := Topology{Kind: Postgres, Replicas: replicas}
		if err := pg.Validate(); (err == nil) != valid {
			t.Errorf("%d standbys: %v", replicas, err)
		}
		if err := pg.CheckOption(StandbyNames, "*"); (err == nil) != (replicas != 0) {
			t.Errorf("commits that wait for one of %d standbys: %v", replicas, err)
		}
	}
}
