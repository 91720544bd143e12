package main

import (
	"fmt"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/runner"
	"github.com/lockchaos/lockchaos/scenarios"
)

// autoBackend chooses the first backend that can run the scenario.
const autoBackend = "auto"

func backendNames() []string {
	rows := format.Texts(runner.Backends(), func(row runner.BackendSpec) string { return row.Name })
	return append([]string{autoBackend}, rows...)
}

// chooseBackend finds the backend of that name, or with auto the first one that
// can run the scenario. The reason is for people.
func chooseBackend(name string, s scenarios.Scenario) (spec runner.BackendSpec, reason string, err error) {
	refused := ""
	for _, row := range runner.Backends() {
		if name != autoBackend && name != row.Name {
			continue
		}
		unable := row.Missing(s)
		switch {
		case unable != "":
			refused = fmt.Sprintf("backend %s cannot run this scenario: %s", row.Name, unable)
			continue
		case refused != "" && name == autoBackend && inCI() && row.Name == runner.SimName:
			reason = "warning: in CI, simulated servers instead of real ones: " + refused
		case refused != "":
			reason = refused
		case name == autoBackend:
			reason = "this machine has what the scenario needs"
		default:
			reason = "chosen with --backend"
		}
		return row, reason + "; " + row.Doc, nil
	}
	if refused == "" {
		return spec, "", known("--backend: unknown backend", name, backendNames())
	}
	return spec, "", fmt.Errorf("%w: %s", cluster.ErrEnvironment, refused)
}
