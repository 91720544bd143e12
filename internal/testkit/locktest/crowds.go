package locktest

import (
	"bytes"
	"context"
	"regexp"
	"runtime/pprof"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// crowds are the costs of many holds, nodes and other users of a server, and their bounds.
func crowds() []behavior {
	return []behavior{
		{"renewed-together", func(s Spec) bool { return s.RenewsTogether && s.Renews }, renewedTogether},
		{"released-together", func(s Spec) bool { return s.Parts > 1 }, releasedTogether},
		{"messages-stay-at-one-master", func(s Spec) bool { return s.Topology == Cluster && s.LocalMessages }, messagesStay},
		{"rights-for-one-prefix", func(s Spec) bool { return s.KeepsPrefix }, rightsForOnePrefix},
	}
}

// crowd is how many holds a client has at once in renewedTogether.
const crowd = 60

// renewedTogether: one client renews many holds in a few requests and goroutines, and not in one of each per hold. All
// locks are in one slot. A hold that is lost meanwhile is the business of other behaviors.
func renewedTogether(t *testing.T, s *fixture) {
	var holds []Hold
	defer func() {
		for _, h := range holds {
			_ = h.Release(context.Background())
		}
	}()
	s.servers.labeled(t, func(running func() int) {
		for i := range crowd {
			one := *s
			one.name = "{" + s.name + "}-" + strconv.Itoa(i)
			holds = append(holds, one.acquire(t, s.a, AcquireOptions{}))
		}
		before, most := s.requestCount(t), 0
		over := time.After(s.spec.Lease * 3 / 2) // in which each hold is due for four renewals
		tick := time.NewTicker(5 * tickEvery)
		defer tick.Stop()
		for ended := false; !ended; {
			select {
			case <-over:
				ended = true
			case <-tick.C:
				most = max(most, running())
			}
		}
		if sent := s.requestCount(t) - before; sent > crowd {
			t.Errorf("%d requests for four renewals of %d holds", sent, crowd)
		}
		if most > crowd/2 {
			t.Errorf("%d goroutines for %d holds", most, crowd)
		}
	})
}

// labeled calls f and makes running count the goroutines that f has started, directly or not, and that still run.
// Goroutines inherit the label, so other tests of the process do not count.
func (b *servers) labeled(t testing.TB, f func(running func() int)) {
	t.Helper()
	name := strconv.Quote(t.Name())
	label := regexp.MustCompile(`(?m)^(\d+) @.*\n# labels: \{.*` + regexp.QuoteMeta(`"locktest":`+name))
	running := func() int {
		var text bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
			t.Fatal(err)
		}
		sum := -1 // without the goroutine that calls f
		for _, m := range label.FindAllStringSubmatch(text.String(), -1) {
			n, _ := strconv.Atoi(m[1])
			sum += n
		}
		return sum
	}
	pprof.Do(context.Background(), pprof.Labels("locktest", t.Name()), func(context.Context) { f(running) })
}

// releasedTogether: the locks of one hold are released in one round trip. No reply comes, so a lock that is released
// after the reply for another is not released until that has been given up.
func releasedTogether(t *testing.T, s *fixture) {
	h := s.acquire(t, s.a, s.longLease())
	if n := len(s.leftovers(t)); n < s.spec.Parts {
		t.Fatalf("a hold of %d locks has %d keys", s.spec.Parts, n)
	}
	for _, p := range s.servers.proxies {
		p.HoldReplies(s.spec.requestWord())
	}
	released := make(chan error, 1)
	go func() { released <- h.Release(context.Background()) }()
	s.awaitClean(t, prompt/2, "all locks are released before any reply has come")
	for _, p := range s.servers.proxies {
		p.DropReplies(0)
		p.CutConnections()
	}
	select {
	case err := <-released:
		if err != nil {
			t.Errorf("release: %v", err)
		}
	case <-time.After(timeout):
		t.Errorf("the release did not return within %v", timeout)
	}
}

// slowProbe is for how long a client may wait until it knows whether the servers have SPUBLISH, and uses PUBLISH from
// then on if it does not.
const slowProbe = time.Second

// messagesStay: the message that wakes a waiter is not sent to all nodes of a cluster. If the servers' replies about
// their abilities came too late for a client, that proves nothing, and the test is repeated with another client.
func messagesStay(t *testing.T, s *fixture) {
	known, err := s.servers.direct[0].Do(context.Background(), "COMMAND", "INFO", "SPUBLISH").Slice()
	if err != nil {
		t.Fatal(err)
	}
	if len(known) == 0 || known[0] == nil {
		t.Skip("the servers have no SPUBLISH, which Redis 7.0 has")
	}
	for try := 1; ; try++ {
		waiting := s.servers.open(t)
		before, slowest := s.broadcasts(t), time.Duration(0)
		for range 3 {
			start := time.Now()
			s.handOver(t, s.acquire(t, s.a, s.longLease()), waiting)
			slowest = max(slowest, time.Since(start))
		}
		sent := s.broadcasts(t) - before
		if sent == 0 {
			return
		}
		if slowest < slowProbe || try == stallTries {
			t.Fatalf("%d messages went from one node of the cluster to another (slowest round: %v)", sent, slowest)
		}
		t.Logf("REPEATED after try %d of at most %d: %d messages to all nodes, and a round took %v",
			try, stallTries, sent, slowest)
	}
}

// broadcasts is how many messages of PUBLISH the nodes have sent to each other.
func (s *fixture) broadcasts(t *testing.T) int {
	t.Helper()
	return s.sumOfInfo(t, "cluster_stats_messages_publish_sent", func(rdb *redis.Client) *redis.StringCmd {
		return rdb.ClusterInfo(context.Background())
	})
}

// rightsForOnePrefix: a user whose rights are limited to a prefix can use locks whose names have the prefix and a hash
// tag. The server counts its refusals. Sentinels are the same user, and need their own channel.
func rightsForOnePrefix(t *testing.T, s *fixture) {
	prefixed := *s
	prefixed.name = "app:{" + s.name + "}"
	s.doAllUntilEnd(t,
		[]any{"ACL", "SETUSER", "default", "resetkeys", "~app:*", "resetchannels", "&app:*", "&__sentinel__:hello"},
		[]any{"ACL", "SETUSER", "default", "allkeys", "allchannels"})
	s.servers.doAll(t, "forget what was refused", "ACL", "LOG", "RESET")
	prefixed.handOver(t, prefixed.acquire(t, s.a, s.longLease()), s.b)
	prefixed.mustBeFree(t, s.a)
	for i, rdb := range s.servers.direct {
		refused, err := rdb.ACLLog(context.Background(), 10).Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range refused {
			t.Errorf("master %d refused %s %s", i+1, entry.Reason, entry.Object)
		}
	}
}
