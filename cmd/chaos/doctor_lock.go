package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/internal/clientcheck"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/generator"
)

// checkClient checks that the client of a lock conforms to the protocol, on servers of the user if there are some.
func checkClient(
	ctx context.Context, lock string, own *cluster.Topology, initTimeout time.Duration,
) (r clientcheck.Result, err error) {
	row, err := adapters.Lookup(lock)
	if err != nil {
		return r, usage(fmt.Errorf("%w%s", err, lockHint(lock)))
	}
	if err := adapters.Ready(lock); err != nil {
		return r, errors.Join(cluster.ErrEnvironment, err)
	}
	self, err := os.Executable()
	if err != nil {
		return r, fmt.Errorf("finding this program on disk: %w", err)
	}
	return clientcheck.Run(ctx, clientcheck.Options{
		Lock: row, Native: []string{self, "client"}, InitTimeout: initTimeout, Servers: own,
	})
}

// doctorLock prints the checks of a client.
func doctorLock(ctx context.Context, s streams, lock, file string, initTimeout time.Duration, asJSON bool) error {
	var own *cluster.Topology
	if file != "" {
		var err error
		if own, err = generator.OwnServers(file); err != nil {
			return usage(fmt.Errorf("--topology: %w", err))
		}
	}
	result, err := checkClient(ctx, lock, own, initTimeout)
	if err != nil {
		return err
	}
	found := result.Findings
	if asJSON {
		if err := s.json(found); err != nil {
			return err
		}
	} else {
		w := s.table()
		for _, f := range found {
			mark := "ok"
			if !f.OK {
				mark = "WRONG"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", mark, f.Check, f.Detail)
		}
		_ = w.Flush()
	}
	for _, f := range found {
		if !f.OK {
			return &codeError{code: exitUnsafe}
		}
	}
	return nil
}
