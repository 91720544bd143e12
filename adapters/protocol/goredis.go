//go:build ignore

package main

import "github.com/redis/go-redis/v9"

// connect returns a go-redis client for each server, or for the master that Sentinels name, with go-redis' defaults.
func (e endpoints) connect() (all []redis.UniversalClient) {
	switch e.Kind {
	case "sentinel":
		return append(all, redis.NewFailoverClient(&redis.FailoverOptions{MasterName: e.MasterName,
			SentinelAddrs: e.Sentinels, SentinelPassword: e.Password, Password: e.Password, Dialer: e.dial}))
	case "cluster":
		return append(all, redis.NewClusterClient(&redis.ClusterOptions{Addrs: e.Addrs, Password: e.Password, Dialer: e.dial}))
	}
	for _, addr := range e.Addrs {
		all = append(all, redis.NewClient(&redis.Options{Addr: addr, Password: e.Password, Dialer: e.dial}))
	}
	return all
}
