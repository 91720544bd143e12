package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
)

// inForce is how long each fault stays in force: Sentinel, or a Redis Cluster, has replaced a master by then.
const inForce = 3 * time.Second

// BenchmarkHealToHealthy measures, for each fault of servers and of the network, the time from the start of its healing
// until the cluster is healthy: every node reports a role, every replica's link is up, and a client can write. A client
// writes through the gates all the time, so that there is something to break.
func BenchmarkHealToHealthy(b *testing.B) {
	for _, row := range Catalog() {
		if row.WholeProcess {
			continue // of clients
		}
		kind := cluster.Sentinel
		if row.WrongTopology(kind) != "" {
			kind = row.Topologies[0]
		}
		b.Run(row.Name+"/"+kind, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				healOnce(b, row, kind)
				b.StartTimer()
			}
		})
	}
}

func healOnce(b *testing.B, row Spec, kind string) {
	b.Helper()
	topology := cluster.Topology{Kind: kind, Options: map[string]string{}}
	for name, values := range row.Settings { // in any order: it fills a map
		topology.Options[name] = values[0]
	}
	config := process.Config{Topology: topology, Requirements: row.Requires, Dir: b.TempDir()}
	c, err := process.Start(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	if err := row.Check(c); err != nil {
		_ = c.Close(context.Background())
		b.Skip(err)
	}
	writing, stop := context.WithCancel(b.Context())
	var traffic sync.WaitGroup
	traffic.Go(func() { keepWriting(writing, c) })
	defer func() {
		stop()
		traffic.Wait()
		if err := c.Close(context.Background()); err != nil {
			b.Error(err)
		}
	}()
	target := string(Master)
	if row.CheckTarget(target) != nil {
		target = ""
	}
	target, err = Resolve(b.Context(), c, clientState{}, row.PlannedTarget(target, c.Topology()))
	if err != nil {
		b.Fatal(err)
	}
	in, err := row.Inject(b.Context(), Env{Cluster: c, Keys: []string{"orders"}}, target)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), inForce)
	defer cancel()
	effect, err := in.Observe(ctx)
	if err != nil {
		effect = "(no effect: " + err.Error() + ")"
	}
	if !row.OneShot {
		<-ctx.Done()
	}
	began := time.Now()
	if _, err := in.Heal(b.Context()); err != nil {
		b.Fatal(err)
	}
	healed := time.Since(began)
	healthy, giveUp := context.WithTimeout(b.Context(), time.Minute)
	defer giveUp()
	why := ""
	if _, err := await(healthy, "health", func() (string, bool) {
		why = unhealthy(healthy, c)
		return why, why == ""
	}); err != nil {
		b.Fatalf("%v: %s", err, why)
	}
	b.ReportMetric(float64(healed.Milliseconds()), "ms-to-heal")
	b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms-to-healthy")
	b.Log(effect)
}

// keepWriting writes to every node through its gate, as client 0, over a new connection each time.
func keepWriting(ctx context.Context, c *process.Cluster) {
	var all sync.WaitGroup
	for _, n := range c.Nodes() {
		all.Go(func() {
			for ctx.Err() == nil {
				_ = writeTo(ctx, c, n.Addr)
				select {
				case <-time.After(20 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	all.Wait()
}

// writeTo subscribes, writes once and closes.
func writeTo(ctx context.Context, c *process.Cluster, addr string) error {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(c.Endpoints(0).Source)}, Timeout: time.Second}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	commands := "AUTH " + c.Endpoints(0).Password + "\r\nSET orders v\r\nEVALSHA 0123 0\r\nSUBSCRIBE news\r\n"
	if _, err := fmt.Fprint(conn, commands); err != nil {
		return err
	}
	reply := make([]byte, 256)
	n, err := conn.Read(reply)
	if err != nil {
		return err
	}
	text, _ := strings.CutPrefix(string(reply[:n]), "+OK\r\n")
	if !strings.HasPrefix(text, "+OK") && !strings.HasPrefix(text, "-MOVED") {
		return errors.New(text)
	}
	return nil
}

// unhealthy describes the defect of the cluster; "" if it has none.
func unhealthy(ctx context.Context, c *process.Cluster) string {
	masters := 0
	for _, n := range c.Nodes() {
		reply, err := c.Do(ctx, n.Name, "INFO", "replication")
		if err != nil {
			return err.Error()
		}
		text, _ := reply.(string)
		switch {
		case strings.Contains(text, "role:master"):
			masters++
			if c.Topology().Kind == cluster.Sentinel && masters == 1 {
				if err := writeTo(ctx, c, n.Addr); err != nil {
					return n.Name + ": " + err.Error()
				}
			}
		case !strings.Contains(text, "master_link_status:up"):
			return n.Name + ": its link is down"
		}
		if c.Topology().Kind == cluster.Sharded {
			info, err := c.Do(ctx, n.Name, "CLUSTER", "INFO")
			if err != nil || !strings.Contains(fmt.Sprint(info), "cluster_state:ok") {
				return n.Name + ": the cluster is not healthy"
			}
		}
	}
	if masters != c.Topology().MasterCount() {
		return fmt.Sprintf("%d masters, not %d", masters, c.Topology().MasterCount())
	}
	return ""
}
