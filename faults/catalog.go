package faults

import (
	"fmt"
	"slices"
	"sync"
)

// Catalog lists every fault in display order.
func Catalog() []Spec { return slices.Clone(catalog()) }

//nolint:gochecknoglobals // computed once, never changed
var catalog = sync.OnceValue(func() []Spec { return slices.Concat(serverFaults(), networkFaults(), clientFaults()) })

// Lookup finds a row by name.
func Lookup(name string) (Spec, error) {
	for _, row := range catalog() {
		if row.Name == name {
			return row, nil
		}
	}
	return Spec{}, fmt.Errorf("unknown fault %q", name)
}

// serverFaults act on servers, their clocks, disks and data.
func serverFaults() []Spec {
	return []Spec{
		killSpec, restartSpec, restartEmptySpec, powerLossSpec, slowDiskSpec, pauseNodeSpec, failoverSpec,
		manualPromotionSpec, splitBrainSpec, endpointChangeSpec, clusterFailoverSpec, clusterFailoverForceSpec,
		clusterTakeoverSpec, slotMigrationSpec, readOnlyDemotionSpec,
		clockJumpSpec, clockDriftSpec, keyDeletedSpec, queueDeletedSpec, foreignWaiterSpec, nodeDeletedSpec,
		flushallSpec, evictionSpec, foreignDataSpec, memoryFullSpec, writesRefusedSpec,
		scriptFlushSpec, snapshotsFailingSpec,
		busyScriptSpec, connectionLimitSpec,
		pubsubCutSpec, rightsRevokedSpec, subscribeRefusedSpec, channelRefusedSpec, scriptsRefusedSpec,
	}
}

// networkFaults act on traffic.
func networkFaults() []Spec {
	return []Spec{
		partitionSpec, partitionOneWaySpec, latencySpec, jitterSpec, bandwidthSpec, slowNodeSpec, packetLateSpec,
		packetLostSpec, connectionResetSpec, silentConnectionsSpec, replyLostSpec, replyLateSpec,
		grantReplyLostSpec, grantReplyLateSpec, requestResentSpec, requestDuplicatedSpec, messageLostSpec,
		replicationHoldSpec, replicationLagSpec, waitStarvedSpec, unplugSpec,
	}
}

// clientFaults act on lock users.
func clientFaults() []Spec { return []Spec{pauseClientSpec, clientCrashSpec, clientRestartSpec} }
