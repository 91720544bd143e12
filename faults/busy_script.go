package faults

import (
	"context"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// busy-script is a script of another program that does not end: after lua-time-limit the server refuses every command
// with BUSY, but keeps its connections. Keys expire meanwhile. SCRIPT KILL ends the script, which has written nothing.
//
// Sentinels kill such a script by themselves, and a Redis Cluster may replace a master that is busy.
var busyScriptSpec = adminFault{
	set: runEndlessScript, noun: "it replies BUSY", healed: "the script was killed",
}.spec(Spec{
	Name:       "busy-script",
	Doc:        "runs an endless script on a server: it replies BUSY to all commands until healed (SCRIPT KILL).",
	Affects:    history.AffectsCommands,
	Source:     "redis.io, EVAL: scripts with maximum execution time (busy-reply-threshold, SCRIPT KILL)",
	Class:      history.FaultPauses,
	Object:     "commands",
	Verb:       "was busy with a script",
	Topologies: []string{cluster.Single, cluster.Quorum},
	Down:       true,
	Resources:  serverProcess,
})

// The script, and for how long its request is given to reach the server: there is no reply.
const (
	endlessScript = "while true do end"
	scriptStart   = 20 * time.Millisecond
)

// runEndlessScript returns when the server replies BUSY, after a millisecond at the earliest. What it returns kills the
// script.
func runEndlessScript(ctx context.Context, a cluster.Admin, node string, _ Env) (undoing, error) {
	restore, err := settings(ctx, a, node, "lua-time-limit")
	if err != nil {
		return nil, err
	}
	kill := func(ctx context.Context) error {
		return settle(ctx, func() (bool, error) {
			if _, err := a.Do(ctx, node, "SCRIPT", "KILL"); err != nil && !replies(err, "NOTBUSY") {
				return false, err
			}
			_, err := a.Do(ctx, node, restore...) // may come before the script has ended
			return err == nil, err
		})
	}
	if _, err := a.Do(ctx, node, "CONFIG", "SET", "lua-time-limit", "1"); err != nil {
		return kill, err
	}
	return kill, settle(ctx, func() (bool, error) {
		short, cancel := context.WithTimeout(ctx, scriptStart)
		defer cancel()
		if _, err := a.Do(short, node, "EVAL", endlessScript, 0); replies(err, "BUSY") {
			return true, nil
		}
		_, err := a.Do(ctx, node, "PING")
		return replies(err, "BUSY"), err
	})
}

// replies reports whether err is an error reply with that code.
func replies(err error, code string) bool {
	return err != nil && strings.Contains(err.Error(), code+" ")
}

// settle calls try until it succeeds, and returns its last error if ctx ends first.
func settle(ctx context.Context, try func() (done bool, err error)) error {
	var last error
	_, err := await(ctx, "success", func() (string, bool) {
		done, err := try()
		last = err
		return "", done
	})
	if err == nil {
		return nil
	}
	return last
}
