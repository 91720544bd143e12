package openable

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks"
	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/topology"
)

// TestEveryNativeLockClassifiesItsErrors: a conformance test over the catalog, of which every row can be opened here.
func TestEveryNativeLockClassifiesItsErrors(t *testing.T) {
	for _, listed := range locks.Catalog() {
		row, err := Lookup(listed.Name)
		if err != nil {
			t.Fatal(err)
		}
		if row.Doc == "" || !strings.HasSuffix(row.Doc, ".") || row.Source == "" || row.Open == nil {
			t.Errorf("%s: no sentence, no source or nothing to open: %+v", row.Name, row)
		}
		for _, unknown := range []error{lock.ErrUnknown, fmt.Errorf("x: %w", lock.ErrUnknown)} {
			if row.Definite(unknown) {
				t.Errorf("%s: Definite(%v) = true", row.Name, unknown)
			}
		}
		for err, code := range map[error]string{lock.ErrHeld: "held", client.ErrNotHeld: "not-held", lock.ErrUnknown: "unknown",
			lock.ErrLost: "lost", errors.New("x"): "error"} {
			if got := row.Code(err); got != code {
				t.Errorf("%s: code %q for %v, want %q", row.Name, got, err, code)
			}
		}
		for _, kind := range []string{"", topology.Single, topology.Sentinel, topology.Sharded, topology.Quorum} {
			if _, err := row.Open(client.Setup{Endpoints: topology.Endpoints{Kind: kind}}, func(client.Reply) {}); err == nil {
				t.Errorf("%s opens without an address of topology %q", row.Name, kind)
			}
		}
	}
	for name, program := range map[string]int{"exec:python3 x.py": 2, "exec:": 0, "nothing": 0} {
		if row, err := Lookup(name); (err == nil) != (program > 0) || len(row.Command) != program {
			t.Errorf("Lookup(%q) = %v, command %q", name, err, row.Command)
		}
	}
}
