package main

import (
	"fmt"

	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/backend/servers"
	"github.com/lockchaos/lockchaos/internal/backend/simulated"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/console"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/scenarios"
)

// autoBackend chooses the first backend that can run the scenario.
const autoBackend = "auto"

// backends is every backend; auto takes the first that is able to run the scenario.
func backends() []backend.Spec {
	return []backend.Spec{servers.Process(), simulated.Spec(), servers.Docker()}
}

func backendNames() []string {
	rows := format.Texts(backends(), func(row backend.Spec) string { return row.Name })
	return append([]string{autoBackend}, rows...)
}

// chooseBackend finds the backend of that name, or with auto the first that can run the scenario. The reason is for
// people.
func chooseBackend(name string, s scenarios.Scenario) (spec backend.Spec, reason string, err error) {
	refused := ""
	for _, row := range backends() {
		if name != autoBackend && name != row.Name {
			continue
		}
		unable := row.Missing(s)
		switch {
		case unable != "":
			if refused == "" { // by the backend that comes first
				refused = fmt.Sprintf("backend %s cannot run this scenario: %s", row.Name, unable)
			}
			continue
		case refused != "" && name == autoBackend && console.InCI() && row.Name == simulated.Name:
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
