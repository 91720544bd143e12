package main

import (
	"strings"
	"testing"
)

func TestDoctorLock(t *testing.T) {
	needRedis(t)
	code, stdout, stderr := chaos("doctor", "--lock", "reentrant", "--json")
	if code != exitSafe {
		t.Errorf("reentrant: exit code %d\n%s%s", code, stdout, stderr)
	}
	validate(t, "doctor-lock", []byte(stdout))
	// plain DEL releases whatever is there: the flaw for which setnx is in the catalog
	code, stdout, _ = chaos("doctor", "--lock", "setnx")
	if code != exitUnsafe || !strings.Contains(stdout, "WRONG  release of a lock not held") {
		t.Errorf("setnx: exit code %d\n%s", code, stdout)
	}
}

func TestAdapterMessages(t *testing.T) {
	t.Setenv("LOCKCHAOS_ADAPTERS", t.TempDir())
	for _, m := range []struct {
		args string
		code int
		want string
	}{
		{"doctor --lock reentrnt", exitUsage, "did you mean reentrant?"},
		{"doctor --lock redis-py/lock", exitEnvironment, "run `chaos adapters build redis-py`"},
		{"run --scenario gc-pause --lock redis-py/lock --backend process", exitEnvironment, "run `chaos adapters build redis-py`"},
		{"run --scenario gc-pause --lock redis-py/lok", exitUsage, "redis-py has lock, lock-no-retry"},
		{"run --scenario redlock-contention --lock redis-py/lock", exitUsage, "does not run on topology quorum"},
		{"run --scenario mixed-fair --lock redis-py/lock --backend sim", exitEnvironment, "runs in real time"},
		{"adapters build redispy", exitUsage, "did you mean redis-py?"},
		{"adapters bild", exitUsage, "did you mean build?"},
	} {
		code, stdout, stderr := chaos(strings.Fields(m.args)...)
		if code != m.code || !strings.Contains(stderr, m.want) {
			t.Errorf("chaos %s: exit code %d, want %d with %q\n%s%s", m.args, code, m.code, m.want, stdout, stderr)
		}
	}
}
