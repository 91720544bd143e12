package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestSnapshotsFail compares a server whose last snapshot failed with a real one: the refused commands, and the words.
func TestSnapshotsFail(t *testing.T) {
	server := startReal(t, "--enable-protected-configs", "yes", "--save", "")
	w := newWorld(t)
	s := openSideBySide(t, server, w, "a")
	s.ask("a", "SET k v")
	s.ask("a", "CONFIG SET dbfilename "+strings.Repeat("x", 300))
	s.ask("a", "BGSAVE")
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for status := ""; !strings.Contains(status, "rdb_last_bgsave_status:err"); <-tick.C {
		fmt.Fprint(s.conns["a"], "INFO persistence\r\n")
		status = ""
		for !strings.HasPrefix(status, "rdb_last_bgsave_status") {
			var err error
			if status, err = s.conns["a"].r.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		for line := ""; !strings.HasPrefix(line, "\r"); { // the rest of the reply
			var err error
			if line, err = s.conns["a"].r.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(line, "module_fork_last_cow_size") {
				line, err = s.conns["a"].r.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if !strings.Contains(s.simulated["a"].send("INFO persistence"), "rdb_last_bgsave_status:err") {
		t.Error("a simulated snapshot did not fail")
	}
	s.ask("a", "SET k w") // without snapshots nothing is refused
	s.ask("a", "CONFIG SET save '3600 1'")
	for _, line := range []string{
		"SET k w", "DEL k", "PING", "PUBLISH ch x", "TTL k", "WATCH k", "CONFIG SET maxmemory 0",
		`EVAL "return redis.call('DEL',KEYS[1])" 1 k`, `EVAL "return redis.call('TTL',KEYS[1])" 1 k`,
		`EVAL "#!lua flags=no-writes\nreturn 1" 0`, `EVAL "#!lua\nreturn 1" 0`,
		"MULTI", "SET k w", "EXEC", "MULTI", "TTL k", "DISCARD",
	} {
		s.ask("a", line)
	}
	s.ask("a", "CONFIG SET save ''")
	s.ask("a", "DEL k")
}
