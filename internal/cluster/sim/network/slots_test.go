package network

import "testing"

func TestNumberedNames(t *testing.T) {
	table, err := NewSlotTable(2, 3)
	if err != nil {
		t.Fatal(err)
	}
	if table.named("witness-n2") != table.named("witness-2") || table.named("witness-s1") != table.named("witness-1") {
		t.Error("a node's number is not read off its name")
	}
	if table.named("witness-nn2") == table.named("witness-2") || table.named("witness-sn2") == table.named("witness-2") {
		t.Error("nn2 and sn2 are not names of nodes")
	}
}
