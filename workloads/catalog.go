// Package workloads decides the clients' actions, one file or folder for each workload; its Go API is not a promise. A
// workload sends operations to a client, records both ends of each, and uses a guarded resource in its critical
// sections. It does not know the faults.
//
// Read [workload.Spec] first, then [session.Session], through which all operations reach a client, so that the history
// has them all.
package workloads

import (
	"fmt"

	"github.com/lockchaos/lockchaos/workloads/mixed"
	"github.com/lockchaos/lockchaos/workloads/waiters"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// Catalog is every workload.
func Catalog() []workload.Spec {
	return []workload.Spec{
		mutexSpec, readersWriterSpec, semaphoreSpec, mixed.Spec(), latchSpec, waiters.Spec(), leaderSpec,
	}
}

// Lookup finds a workload by name.
func Lookup(name string) (workload.Spec, error) {
	for _, row := range Catalog() {
		if row.Name == name {
			return row, nil
		}
	}
	return workload.Spec{}, fmt.Errorf("unknown workload %q", name)
}
