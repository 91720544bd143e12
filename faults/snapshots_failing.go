package faults

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// snapshots-failing is a server that cannot write its snapshots, as on a full disk. With stop-writes-on-bgsave-error,
// the default, it refuses every command that writes, including releases and renewals, with MISCONF. Keys still expire.
// The snapshot fails because its file name is longer than any file system allows: that works on every server and does
// not fill its disk.
var snapshotsFailingSpec = adminFault{
	set:    failSnapshots,
	count:  errorReplies("MISCONF"),
	noun:   "MISCONF reply",
	healed: "the settings of snapshots are what they were",
}.spec(Spec{
	Name:       "snapshots-failing",
	Doc:        "makes a server fail to save its data (BGSAVE): it replies MISCONF to writes until healed.",
	Affects:    history.AffectsCommands,
	Source:     "redis.io, Configuration: stop-writes-on-bgsave-error",
	Class:      history.FaultRefuses,
	Object:     "writes",
	Verb:       "could not save its data and refused writes",
	Topologies: []string{cluster.Single, cluster.Quorum},
	Resources:  ofEachNode("the snapshots of "),
})

// impossibleName is longer than any file system's limit.
func impossibleName() string { return strings.Repeat("x", 300) }

// failSnapshots returns when a snapshot has failed.
func failSnapshots(ctx context.Context, a cluster.Admin, node string, _ Env) (undoing, error) {
	restore, err := settings(ctx, a, node, "save", "dbfilename")
	if err != nil {
		return nil, err
	}
	undo := func(ctx context.Context) error {
		if err := undoneBy(a, node, restore...)(ctx); err != nil {
			return err
		}
		if i := slices.Index(restore, any("save")); i >= 0 && i+1 < len(restore) && restore[i+1] == "" {
			return nil // without snapshots nothing is refused, and the server is to leave none behind
		}
		return snapshot(ctx, a, node, "ok")
	}
	_, err = a.Do(ctx, node, "CONFIG", "SET", "save", "3600 1", "dbfilename", impossibleName())
	if err == nil {
		err = snapshot(ctx, a, node, "err")
	}
	return undo, err
}

// snapshot makes snapshots until one has ended that way.
func snapshot(ctx context.Context, a cluster.Admin, node, status string) error {
	return settle(ctx, func() (bool, error) {
		if _, err := a.Do(ctx, node, "BGSAVE"); err != nil && !strings.Contains(err.Error(), "already in progress") {
			return false, err
		}
		reply, err := a.Do(ctx, node, "INFO", "persistence")
		text, _ := reply.(string)
		if err == nil && !strings.Contains(text, "rdb_last_bgsave_status:"+status) {
			err = errors.New("the snapshot has not ended")
		}
		return err == nil, err
	})
}
