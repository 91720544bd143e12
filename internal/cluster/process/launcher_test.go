package process

import (
	"net/netip"
	"testing"
)

// TestInSubnet: every server of the largest topology has a unique address in the smallest subnet, which is neither
// the gateway nor the first or last address.
func TestInSubnet(t *testing.T) {
	const most = 15 // see package cluster
	for _, text := range []string{"172.20.0.0/26", "172.20.1.192/26", "10.193.7.0/24"} {
		subnet := netip.MustParsePrefix(text)
		gateway := subnet.Addr().Next()
		taken := map[netip.Addr]string{subnet.Addr(): "the subnet's first", gateway: "the gateway's"}
		gates := map[netip.AddrPort]string{}
		for _, sentinel := range []bool{false, true} {
			for i := range most {
				h := Host{Sentinel: sentinel, I: i + 1}
				p := InSubnet(subnet, gateway, lowPort, h)
				if !subnet.Contains(p.IP) || !subnet.Contains(p.IP.Next()) { // the last one is for broadcast
					t.Errorf("%s: %s is at %s, outside", subnet, h, p.IP)
				}
				if whose, ok := taken[p.IP]; ok {
					t.Errorf("%s: %s is at %s, which is %s", subnet, h, p.IP, whose)
				}
				taken[p.IP] = h.String()
				for _, gate := range []netip.AddrPort{p.Gate, p.BusGate} {
					if whose, ok := gates[gate]; ok || gate.Addr() != gateway {
						t.Errorf("%s: %s has its gate at %s, which is %s", subnet, h, gate, whose)
					}
					gates[gate] = h.String()
				}
			}
		}
	}
}
