package workloads

import "fmt"

// Catalog is every workload.
func Catalog() []Spec {
	return []Spec{mutexSpec, readersWriterSpec, semaphoreSpec, mixedSpec, latchSpec, waitersSpec}
}

// Lookup finds a workload by name.
func Lookup(name string) (Spec, error) {
	for _, row := range Catalog() {
		if row.Name == name {
			return row, nil
		}
	}
	return Spec{}, fmt.Errorf("unknown workload %q", name)
}
