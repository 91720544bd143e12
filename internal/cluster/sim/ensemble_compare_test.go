package sim_test

// ensembleBounds follow from ZooKeeper 3.9 with tickTime 100, syncLimit 10 and sessions of 4 s: a follower gives
// up a leader that is silent for ten ticks, and was heard from up to a tick before; an election waits 200 ms for a
// better vote; go-zookeeper gives up a server that is silent for two thirds of the session; the leader expires a
// session at the first tick after its timeout. Where only the speed of the machine limits a time, the bound is above
// the longest one recorded, on a busy machine.
func ensembleBounds() []bound {
	const silent, vote, session = 900, 200, 4000
	return []bound{
		{"kill of the leader", "", "hi role=leader", vote, 1000},
		{"kill of the leader", "", "c0 write=accepted in epoch +1", vote, 1500},
		{"kill of a follower", "", "c1 session=StateHasSession", 0, 200},
		{"pause of the leader", "", "hi role=none", silent, 1500},
		{"pause of the leader", "", "hi role=leader", silent + vote, 3000},
		{"pause of the leader", "", "c0 session=StateDisconnected", session / 2, session * 3 / 4},
		{"partition of the leader from its followers", "", "hi role=leader", silent + vote, 6000},
		{"partition of the leader from its followers", "", "c0 session=StateDisconnected", silent, 1500},
		{"kill of both followers", "", "le role=none", 0, 500},
		{"partition of a client", "", "c0 session=StateDisconnected", session / 2, session * 3 / 4},
		{"partition of a client", "", "c1 watch 1=EventNodeDeleted holder", session - 200, session + 300},
		{"end of the partition of a client", "", "c0 session=StateExpired", 0, 200},
		{"partition of a follower", "", "c1 session=StateDisconnected", silent, 1500},
	}
}
