package target

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestParseAddress reads every form of URL.
func TestParseAddress(t *testing.T) {
	for text, want := range map[string]Address{
		"redis://h":                   {Kind: cluster.Single, Servers: []string{"h:6379"}},
		"redis://h:1/2":               {Kind: cluster.Single, Servers: []string{"h:1"}, Database: 2},
		"redis://[::1]":               {Kind: cluster.Single, Servers: []string{"[::1]:6379"}},
		"rediss://me@h:1":             {Kind: cluster.Single, Servers: []string{"h:1"}, Username: "me", TLS: true},
		"redis://a,b:2,c":             {Kind: cluster.Quorum, Servers: []string{"a:6379", "b:2", "c:6379"}},
		"sentinel://a,b:1":            {Kind: cluster.Sentinel, Servers: []string{"a:26379", "b:1"}, Master: "mymaster"},
		"sentinel://a/m?tls=true":     {Kind: cluster.Sentinel, Servers: []string{"a:26379"}, Master: "m", TLS: true},
		"sentinel://a/m?db=3":         {Kind: cluster.Sentinel, Servers: []string{"a:26379"}, Master: "m", Database: 3},
		"tcp://a:1,[::1]:2":           {Kind: cluster.Command, Servers: []string{"a:1", "[::1]:2"}},
		"cluster://me@a:7000,b?tls=1": {Kind: cluster.Sharded, Servers: []string{"a:7000", "b:6379"}, Username: "me", TLS: true},
	} {
		got, err := ParseAddress(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// TestBadAddress: errors name the mistake, and never contain a possible password.
func TestBadAddress(t *testing.T) {
	const secret = "hunter2"
	for text, want := range map[string]string{
		"redis://me:" + secret + "@h":     "CHAOS_TARGET_PASSWORD",
		"redis://:" + secret + "@h":       "CHAOS_TARGET_PASSWORD",
		"redis://h:" + secret:             "HOST:PORT",
		"h:6379":                          "not a URL",
		"http://h":                        "unknown scheme",
		"redis://":                        "lacks a host",
		"redis://a,,b":                    "lacks a host",
		"redis://h:0":                     "HOST:PORT",
		"redis://h/" + secret:             "number of a database",
		"redis://h?password=" + secret:    "unknown option",
		"cluster://h/1":                   "no database",
		"cluster://h?tls=" + secret:       "invalid value",
		"sentinel://h/m?db=-1":            "invalid value",
		"tcp://h:" + secret:               "HOST:PORT",
		"tcp://h":                         "HOST:PORT",
		"tcp://me@h:1":                    "neither a user",
		"tcp://me:" + secret + "@h:1":     "CHAOS_TARGET_PASSWORD",
		"tcp://h:1/" + secret:             "neither a user",
		"tcp://h:1,h:1":                   "twice",
		"redis://h/%zz" + secret:          "not valid",
		"redis://%zz:" + secret + "@h":    "CHAOS_TARGET_PASSWORD",
		"redis://me%3A" + secret + "@h:1": "CHAOS_TARGET_PASSWORD",
	} {
		_, err := ParseAddress(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v, want %q and no secret", text, err, want)
		}
	}
	if _, err := ParseAddress("redis://a:b@h"); !errors.Is(err, errPasswordInURL) {
		t.Error(err)
	}
}

// TestAbilities: a target has no way to harm servers, so that a fault which needs one has nothing to call.
func TestAbilities(t *testing.T) {
	var plain, failover any = (*Target)(nil), Failover{}
	harmful := func(x any) (names []string) {
		add := func(name string, has bool) {
			if has {
				names = append(names, name)
			}
		}
		_, has := x.(cluster.Killer)
		add("Killer", has)
		_, has = x.(cluster.Pauser)
		add("Pauser", has)
		_, has = x.(cluster.Clocks)
		add("Clocks", has)
		_, has = x.(cluster.Disks)
		add("Disks", has)
		_, has = x.(cluster.Network)
		add("Network", has)
		_, has = x.(cluster.Promoter)
		add("Promoter", has)
		_, has = x.(cluster.Admin)
		add("Admin", has)
		return names
	}
	if got := harmful(plain); got != nil {
		t.Errorf("a target is a %v", got)
	}
	if diff := cmp.Diff([]string{"Promoter", "Admin"}, harmful(failover)); diff != "" {
		t.Errorf("with failovers (-want +got):\n%s", diff)
	}
	for _, command := range [][]any{
		{"CLUSTER", "FAILOVER", "FORCE"}, {"CLUSTER", "FAILOVER", "TAKEOVER"}, {"FLUSHALL"}, {"CONFIG", "SET", "a", "b"},
		{"CLUSTER"}, {"CLUSTER FAILOVER", "FORCE"},
	} {
		if _, err := (Failover{}).Do(t.Context(), "n1", command...); !errors.Is(err, errForbidden) {
			t.Errorf("%v: %v", command, err)
		}
	}
}
