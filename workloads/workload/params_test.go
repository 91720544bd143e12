package workload

import (
	"fmt"
	"testing"
)

// TestTaggedKeys: the names of all keys end with the same hash tag, behind a prefix.
func TestTaggedKeys(t *testing.T) {
	p := Params{Kind: Mixed, Clients: 1, Keys: 2, Tagged: true, Prefix: "run:"}
	want := []string{"run:orders-0{shop}", "run:orders-1{shop}", "run:own-0{shop}"}
	for i, key := range p.KeyNames() {
		if key != want[i] {
			t.Errorf("key %d is %s, want %s", i, key, want[i])
		}
	}
	if one := (Params{Kind: Mutex, Keys: 1, Tagged: true}).KeyNames()[0]; one != "orders{shop}" {
		t.Errorf("the only key is %s", one)
	}
}

func TestKeyNames(t *testing.T) {
	for keys, want := range map[int]string{1: "[orders]", 3: "[orders-0 orders-1 orders-2]"} {
		if got := fmt.Sprint(Params{Keys: keys}.KeyNames()); got != want {
			t.Errorf("%d keys are %s, want %s", keys, got, want)
		}
	}
}
