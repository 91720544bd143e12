package workloads

import "fmt"

// Catalog is every workload, in the order in which people read it.
func Catalog() []Spec {
	return []Spec{mutexSpec, readersWriterSpec, semaphoreSpec}
}

// Lookup finds a row by name.
func Lookup(name string) (Spec, error) {
	for _, row := range Catalog() {
		if row.Name == name {
			return row, nil
		}
	}
	return Spec{}, fmt.Errorf("no workload is called %q", name)
}
