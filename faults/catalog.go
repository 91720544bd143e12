package faults

import "fmt"

// Catalog is every fault, in the order in which people read it.
func Catalog() []Spec {
	return []Spec{killSpec, failoverSpec, pauseClientSpec, pauseNodeSpec, replicationHoldSpec}
}

// Lookup finds a row by name.
func Lookup(name string) (Spec, error) {
	for _, row := range Catalog() {
		if row.Name == name {
			return row, nil
		}
	}
	return Spec{}, fmt.Errorf("no fault is called %q", name)
}
