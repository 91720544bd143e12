package main

import (
	"fmt"
	"strings"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/nearest"
	"github.com/lockchaos/lockchaos/internal/runner"
	"github.com/lockchaos/lockchaos/scenarios"
)

func backendNames() []string {
	names := []string{"auto"}
	for _, row := range runner.Backends() {
		names = append(names, row.Name)
	}
	return names
}

// chooseBackend is the backend of that name, or with auto the first that can
// do what the scenario needs; why is for people.
func chooseBackend(name string, s scenarios.Scenario) (spec runner.BackendSpec, why string, err error) {
	var lacks error
	for _, row := range runner.Backends() {
		if name != "auto" && name != row.Name {
			continue
		}
		unable := row.Unable(s)
		switch {
		case unable == "" && lacks != nil:
			return row, fmt.Sprintf("chosen because of %v; %s", lacks, row.Doc), nil
		case unable == "" && name == "auto":
			return row, "chosen because this machine can do what the scenario needs; " + row.Doc, nil
		case unable == "":
			return row, "asked for; " + row.Doc, nil
		}
		lacks = fmt.Errorf("%w: backend %s: %s", cluster.ErrEnvironment, row.Name, unable)
	}
	if lacks == nil {
		return spec, "", usage(noBackend(name))
	}
	return spec, "", lacks
}

// noBackend says what there is.
func noBackend(name string) error {
	there := strings.Join(backendNames(), ", ")
	if near := nearest.To(name, backendNames()); near != "" {
		return fmt.Errorf("no backend is called %q (did you mean %s?)", name, near)
	}
	return fmt.Errorf("no backend is called %q; there is: %s", name, there)
}
