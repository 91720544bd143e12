package cluster

import (
	"reflect"
	"strings"
	"testing"
)

// TestExpand: each placeholder, and a directory with a space, which stays one word.
func TestExpand(t *testing.T) {
	v := Values{Number: 2, Host: "127.0.1.2", Disk: "/a b/n2", Here: "/h", Ports: map[string]int{"client": 7000, "peer": 7001},
		Gates: map[string][]string{"client": {"g1:7000", "g2:7000"}, "peer": {"g1:7001", "g2:7001"}}}
	got, err := v.Words(`srv --at {host}:{port.client} --name={name}/{number} '--say=a b' --me {gate.peer} --all {peers.peer} ` +
		`--first x://{n1.peer} --data {disk}/x {here}/y {} {"a":1}`)
	want := []string{"srv", "--at", "127.0.1.2:7000", "--name=n2/2", "--say=a b", "--me", "g2:7001", "--all",
		"g1:7001,g2:7001", "--first", "x://g1:7001", "--data", "/a b/n2/x", "/h/y", "{}", "{a:1}"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%q\n%q", err, got, want)
	}
}

// TestCommandTopology: the topologies that Validate refuses, with the reason.
func TestCommandTopology(t *testing.T) {
	with := func(change func(*Topology)) Topology {
		top := Topology{Kind: Command, Nodes: 2, Run: "srv {port.client} {n2.peer}"}
		change(&top)
		return top
	}
	tests := map[string]struct {
		t    Topology
		want string // in the error; "": valid
	}{
		"valid":        {with(func(*Topology) {}), ""},
		"defaults":     {Topology{Kind: Command, Run: "srv"}, ""},
		"no run":       {with(func(t *Topology) { t.Run = "" }), "needs run"},
		"nodes":        {with(func(t *Topology) { t.Nodes = 16 }), "1 to 15 nodes"},
		"negative":     {with(func(t *Topology) { t.Nodes = -1 }), "1 to 15 nodes"},
		"quote":        {with(func(t *Topology) { t.Run = "srv 'a" }), "srv 'a"},
		"pipe":         {with(func(t *Topology) { t.Run = "srv | tee x" }), "a shell is sh -c"},
		"blank":        {with(func(t *Topology) { t.Run = "  " }), "name of a program"},
		"unknown":      {with(func(t *Topology) { t.Run = "srv {hots}" }), "unknown placeholder {hots}"},
		"without port": {with(func(t *Topology) { t.Run = "srv {gate}" }), "{gate.client}"},
		"with port":    {with(func(t *Topology) { t.Run = "srv {disk.x}" }), "{disk.x} is {disk}"},
		"no node":      {with(func(t *Topology) { t.Run = "srv {n3.peer}" }), "no node n3"},
		"in env":       {with(func(t *Topology) { t.Env = map[string]string{"A": "{x}"} }), "unknown placeholder {x}"},
		"ready twice":  {with(func(t *Topology) { t.Ready = &Readiness{TCP: "client", Log: "x"} }), "ready is one of"},
		"ready empty":  {with(func(t *Topology) { t.Ready = &Readiness{} }), "ready is one of"},
		"ready port":   {with(func(t *Topology) { t.Ready = &Readiness{TCP: "web"} }), "client, peer"},
		"empty clock":  {with(func(t *Topology) { t.Clock = &Program{} }), "name of a program"},
		"empty role":   {with(func(t *Topology) { t.Role = &Program{} }), "name of a program"},
		"masters":      {with(func(t *Topology) { t.Masters = 2 }), "nodes, not masters"},
		"other kind":   {Topology{Kind: Single, Run: "srv"}, "for topology command, not single"},
		"given":        {Topology{Kind: Command, Addrs: []string{"a.example:1", "[::1]:2"}}, ""},
		"no port":      {Topology{Kind: Command, Addrs: []string{"a:1", "b"}}, "address 2 is not HOST:PORT"},
		"no host":      {Topology{Kind: Command, Addrs: []string{":1"}}, "address 1 is not HOST:PORT"},
		"port 0":       {Topology{Kind: Command, Addrs: []string{"a:0"}}, "address 1 is not HOST:PORT"},
		"twice":        {Topology{Kind: Command, Addrs: []string{"a:1", "a:1"}}, "address 2 is there twice"},
		"run and addr": {with(func(t *Topology) { t.Addrs = []string{"a:1", "b:1"} }), "the servers run already"},
		"addrs of one": {Topology{Kind: Single, Addrs: []string{"a:1"}}, "for topology command, not single"},
		"none":         {Topology{Kind: None}, ""},
		"none, nodes":  {Topology{Kind: None, Nodes: 1}, "for topology command, not none"},
		"none, master": {Topology{Kind: None, Masters: 1}, "topology none has no servers"},
		"many ports": {with(func(t *Topology) {
			t.Run = "srv {port.a}{port.b}{port.c}{port.d}{port.e}{port.f}{port.g}{port.h}"
		}), "at most 8 ports"},
	}
	for name, test := range tests {
		err := test.t.Defaults().Validate()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// TestOptionsOfCommand: options that the harness knows belong to other servers.
func TestOptionsOfCommand(t *testing.T) {
	for _, kind := range []string{Command, None} {
		for _, name := range []string{"forceSync", "appendonly"} {
			if err := (Topology{Kind: kind}).CheckOption(name, "no"); err == nil || !strings.Contains(err.Error(), "no options") {
				t.Errorf("%s: %s: %v", kind, name, err)
			}
		}
	}
}

// TestCommandOutput: the output of programs of the user, and nonsense, whose error names the mistake.
func TestCommandOutput(t *testing.T) {
	for out, want := range map[string]string{
		"":                                  "EOF",
		"[]":                                "cannot unmarshal",
		`{"a": {"holder": "x"}}`:            "unknown field",
		`{"a": {"owner": "x"}} {}`:          "more than one object",
		`{"a": {"owner": "x", "ttl_ms": 1}`: "EOF",
	} {
		if keys, err := ParseHolders([]byte(out)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", out, keys, err)
		}
	}
	keys, err := ParseHolders([]byte(`{"a": {"owners": ["y", "x"]}}`))
	if err != nil || keys["a"].Owner != "x" || keys["a"].TTL >= 0 {
		t.Errorf("%+v, %v", keys, err)
	}
	if at, err := ParseSeconds([]byte("1795937400.25\n")); err != nil || at.UnixMilli() != 1795937400250 {
		t.Errorf("%v, %v", at, err)
	}
	for _, out := range []string{"", "noon", "1795937400250", "NaN"} {
		if at, err := ParseSeconds([]byte(out)); err == nil {
			t.Errorf("%q was read as %v", out, at)
		}
	}
	if role := RoleNamed(" Standby\n"); role != "slave" {
		t.Errorf("role %q", role)
	}
}
