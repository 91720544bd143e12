package workloads

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/workloads/workload"
)

func TestParams(t *testing.T) {
	for _, test := range []struct {
		in   workload.Params
		want string // part of the error; "": none
	}{
		{workload.Params{}, ""},
		{workload.Params{Clients: workload.MaxClients, Keys: workload.MaxKeys, Hold: workload.MaxDuration}, ""},
		{workload.Params{Clients: workload.MaxClients + 1}, "clients must be between 1 and 1,000, not 1001"},
		{workload.Params{Clients: -1}, "clients must be between"},
		{workload.Params{Keys: workload.MaxKeys + 1}, "keys must be between 1 and 10,000, not 10001"},
		{workload.Params{Keys: -1}, "keys must be between"},
		{workload.Params{Kind: "dance"}, `unknown workload "dance"`},
		{workload.Params{Hold: -1}, "negative"}, {workload.Params{Jitter: -1}, "negative"}, {workload.Params{Think: -1}, "negative"},
		{workload.Params{Lease: -1}, "negative"}, {workload.Params{Wait: -1}, "negative"},
		{workload.Params{Lease: time.Millisecond}, ""},
		{workload.Params{Lease: time.Millisecond - 1}, "shorter than a millisecond"},
		{workload.Params{Think: workload.MaxDuration + 1}, "longer than the limit"},
		{workload.Params{Sequences: "nested"}, "mutex has no sequences"},
		{workload.Params{Kind: workload.Mixed, Sequences: "trys"}, `no sequence is called "trys"`},
	} {
		err := Validate(test.in.Defaults())
		if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.in, err, test.want)
		}
	}
	want := workload.Params{Kind: "mutex", Clients: 5, Keys: 1, Hold: 100 * time.Millisecond, Wait: 10 * time.Second}
	if diff := cmp.Diff(want, workload.Params{}.Defaults()); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func TestCatalogOfWorkloads(t *testing.T) {
	for _, row := range Catalog() {
		if row.Name == "" || !strings.HasSuffix(row.Doc, ".") || row.Source == "" || row.Client == nil {
			t.Errorf("%q: no sentence, no source or no client", row.Name)
		}
		if found, err := Lookup(row.Name); err != nil || found.Name != row.Name {
			t.Errorf("Lookup(%q) = %q, %v", row.Name, found.Name, err)
		}
	}
}
