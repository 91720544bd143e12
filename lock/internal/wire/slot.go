package wire

import (
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// SlotOf is the cluster slot of a key: CRC16 (XMODEM) of the part that is hashed,
// modulo 16384 (Redis cluster specification, "Key distribution model").
func SlotOf(key string) int {
	if HasTag(key) {
		open := strings.IndexByte(key, '{')
		key = key[open+1:]
		key = key[:strings.IndexByte(key, '}')]
	}
	crc := uint16(0)
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			high := crc & 0x8000
			crc <<= 1
			if high != 0 {
				crc ^= 0x1021
			}
		}
	}
	return int(crc % 16384)
}

// Addresses returns the addresses of servers as configured in their clients, for an order in
// which all programs that were given the same sort their locks.
func Addresses(rdbs ...redis.UniversalClient) string {
	var list []string
	for _, rdb := range rdbs {
		switch c := rdb.(type) {
		case *redis.Client:
			list = append(list, fmt.Sprintf("%s/%d", c.Options().Addr, c.Options().DB))
		case *redis.ClusterClient:
			list = append(list, c.Options().Addrs...)
		}
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

// HasTag reports whether Redis hashes only a part of name: between the first brace and the next closing one, unless
// that is empty (Redis cluster specification, "Hash tags").
func HasTag(name string) bool {
	open := strings.IndexByte(name, '{')
	if open < 0 {
		return false
	}
	return strings.IndexByte(name[open+1:], '}') > 0
}
