package story

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
)

// TestChainedRelease: client 0 releases an earlier hold again, which deletes the key of its next one, and the release
// of that one deletes the key of client 1. Without the first of these releases, two clients were granted what one
// release had freed.
func TestChainedRelease(t *testing.T) {
	const again = "client 0 release orders 1.2-1.21 ok owner=a\n"
	const text = `clients 3
client 0 acquire orders 1.0-1.01 ok owner=a lease=9s valid=8.9s
client 1 acquire orders 1.05-1.4 ok owner=b lease=9s valid=8.9s
client 2 acquire orders 1.05-1.7 ok owner=c lease=9s valid=8.9s
client 0 release orders 1.1-1.12 ok owner=a
client 0 acquire orders 1.13-1.14 ok owner=d lease=9s valid=8.9s
` + again + `client 0 release orders 1.5-1.51 ok owner=d
client 1 release orders 3.0-3.1 ok owner=b
client 2 release orders 3.2-3.3 ok owner=c
`
	const both = "Client 1 and client 2 both held `orders` for 1.30 s: "
	for name, test := range map[string]storyTest{
		"released again": {text, checker.BrokenPromise, "foreign-release", both + "client 0, granted it at 1.140 s, " +
			"released it at 1.500 s after client 1 had been granted it at 1.400 s; client 2 got the lock at 1.700 s; before " +
			"that, client 0, granted it at 1.140 s, released it at 1.200 s, without an error, for another owner (`a`), which " +
			"did not hold it; client 1 got the lock at 1.400 s", "compare and delete"},
		"released once": {strings.Replace(text, again, "", 1), checker.BrokenPromise, "taken-over-twice", both +
			"client 0 released it at 1.100 s while the acquires of both were in flight", "one command"},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, "n1") })
	}
}

// TestAbandonedHold: a hold ended without a release, and the server keeps the key, which has no expiry: it is the cause
// if a request was refused although the lock was free from when it was sent, and if the key is that of the hold.
func TestAbandonedHold(t *testing.T) {
	const held = `clients 3
client 0 acquire pool 1.0-1.1 ok owner=a permits=3 limit=3 lease=500ms valid=400ms
client 0 lost pool 1.6 owner=a
witness n1 1.2 pool
`
	const refused = "client 1 try pool 4.0-4.1 fail owner=b permits=1 limit=3 code=held\nwitness n1 4.05 pool\n"
	const abandoned = "Client 0, granted `pool` at 1.100 s, did not release it by the end of its validity at 1.500 s, " +
		"and the key has no expiry: n1 still had it at "
	for name, test := range map[string]storyTest{
		"and a try": {held + "witness n1 1.7 pool\n" + refused, "", "no-lease", abandoned + "4.050 s; the try of client 1, " +
			"sent at 4.000 s, was refused at 4.100 s", "Set the lease"},
		"and a probe": {held + "witness n1 1.7 pool\nwitness n1 4.9 pool\nprobe pool 5.0 fail\n", "", "no-lease", abandoned +
			"4.900 s; after the run, at 5.000 s, an acquire was refused", "Set the lease"},
		"and the key was gone": {held + "witness n1 1.7\n" + refused, "", "unknown", "Client 1 was refused 1 permit", ""},
		"and the key is another's": {strings.Replace(held, "permits=3", "permits=2", 1) + "witness n1 1.7 pool\n" +
			strings.Replace(refused, "4.05 pool", "4.05 pool owner=c", 1) +
			"client 2 acquire pool 2.0-2.1 ok owner=c permits=1 limit=3 lease=9s valid=8.9s\n", "", "unknown",
			"Client 1 was refused 1 permit", ""},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, "n1") })
	}
}

// TestDemotedServer: a server that had become a replica refused a third of the releases; any other error has no known
// cause.
func TestDemotedServer(t *testing.T) {
	text := `clients 3
nemesis read-only-demotion 0.3 inject id=1 target=n1 class=demotes object=role
nemesis read-only-demotion 0.4 effect id=1
nemesis read-only-demotion 0.9 heal id=1
`
	for i := range 12 {
		release := "ok"
		if i%3 == 2 {
			release = `info code=ERR text="READONLY it is a replica"`
		}
		text += fmt.Sprintf("client %d acquire orders %d.0-%d.01 ok owner=o%d lease=300ms\n", i%3, i+1, i+1, i) +
			fmt.Sprintf("client %d try orders %d.02-%d.03 fail owner=t%d code=held\n", (i+1)%3, i+1, i+1, i) +
			fmt.Sprintf("client %d release orders %d.04-%d.05 %s owner=o%d\n", i%3, i+1, i+1, release, i)
	}
	for name, test := range map[string]storyTest{
		"a replica": {text, "", "demoted-server", "The release of `orders` by client 2, sent at 6.040 s, ended with an " +
			"error at 6.050 s, because its connection led to a server that is a replica (READONLY); `read-only-demotion` took " +
			"effect on n1 at 0.400 s", "close the connection"},
		"another error": {strings.ReplaceAll(text, "READONLY", "CROSSSLOT"), "", "unknown", "The release of orders by", ""},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, "n1") })
	}
}
