package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/examples/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/cluster"
)

var local *cluster.Cluster

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local = c }, cluster.ControlPlaneOnly())
}

// volume is one with the given source, in YAML's flow style.
func volume(name, source string) string {
	return fmt.Sprintf("---\n{apiVersion: v1, kind: PersistentVolume, metadata: {name: %s}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany], %s}}\n", name, source)
}

func ceph(name string) string { return volume(name, "cephfs: {monitors: [ceph.example.com]}") }
func rbd(name string) string  { return volume(name, "rbd: {monitors: [ceph.example.com], image: disk}") }

func gluster(name string) string  { return volume(name, "glusterfs: {endpoints: gluster, path: vol}") }
func portworx(name string) string { return volume(name, "portworxVolume: {volumeID: vol}") }

func class(name, provisioner string) string {
	return fmt.Sprintf("---\n{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: %s}, provisioner: %s}\n", name, provisioner)
}

func driver(name string) string {
	return fmt.Sprintf("---\n{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: %s}}\n", name)
}

// attachment is one of volume with the given status.
func attachment(name, attacher, volume, status string) string {
	return fmt.Sprintf("---\n{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: %s}, spec: {attacher: %s, nodeName: worker-0, source: {persistentVolumeName: %s}}, status: %s}\n",
		name, attacher, volume, status)
}

func TestVolumePlugins(t *testing.T) {
	stage := checktest.New(t, local, "openshift-cluster-storage-operator", "storage-preflight")

	var many strings.Builder
	for i := range 12 {
		many.WriteString(rbd(fmt.Sprintf("disk-%02d", i)))
	}
	removed := func(outcome preflight.Outcome, says, remedy string) checktest.Want {
		return checktest.Want{Outcome: outcome, Reason: "VolumePluginRemoved", Says: []string{says}, Remedies: []string{remedy}}
	}
	pass := checktest.Want{Outcome: preflight.Pass, Reason: "Passed"}
	for name, tc := range map[string]struct {
		reason string
		state  string
		ask    func(*testing.T, ...string) checktest.Answer
		want   checktest.Want
	}{
		"Nothing": {
			reason: "a cluster without storage has none that is dropped",
			want:   pass,
		},
		"OfToday": {
			reason: "CSI, NFS and local volumes stay",
			state: volume("csi", "csi: {driver: rbd.csi.ceph.com, volumeHandle: disk}") + volume("nfs", "nfs: {server: nfs.example.com, path: /vol}") +
				class("ceph", "rbd.csi.ceph.com") + driver("rbd.csi.ceph.com") + attachment("a", "rbd.csi.ceph.com", "csi", "{attached: true}"),
			want: pass,
		},
		"CephFS": {
			reason: "Kubernetes 1.31 has no CephFS plugin, and nothing takes over",
			state:  ceph("shared"),
			want:   removed(preflight.Fail, "nothing in the target serves PersistentVolume shared (1 in all)", "Copy the data to volumes of a CSI driver, then: oc delete pv shared"),
		},
		"CephCSI": {
			reason: "nor does the CSI driver of Ceph: it cannot serve what it did not make",
			state:  rbd("disk") + driver("rbd.csi.ceph.com"),
			want:   removed(preflight.Fail, "PersistentVolume disk ", "oc delete pv disk"),
		},
		"Gluster": {
			reason: "GlusterFS is gone since 1.26, but an object may be left, and with it the hope that it works",
			state:  gluster("old"),
			want:   removed(preflight.Fail, "PersistentVolume old ", "oc delete pv old"),
		},
		"Portworx": {
			reason: "the story of the migration: there is a CSI driver that takes over, but it has to be installed",
			state:  portworx("px"),
			want:   removed(preflight.Fail, "pxd.portworx.com, which has to take over, is not installed for PersistentVolume px (1 in all)", "Install the CSI driver with the operator of its vendor, for px"),
		},
		"PortworxMigrated": {
			reason: "where it is, volumes and classes of the plugin work on",
			state: portworx("px") + class("px", "kubernetes.io/portworx-volume") + driver("pxd.portworx.com") +
				attachment("a", "pxd.portworx.com", "px", "{attached: true}"),
			want: pass,
		},
		"PortworxFailing": {
			reason: "the update detaches and attaches everything: what fails today should be known",
			state: portworx("px") + driver("pxd.portworx.com") +
				attachment("csi-1", "pxd.portworx.com", "px", `{attached: true, detachError: {message: "timeout"}}`) +
				attachment("csi-2", "pxd.portworx.com", "px", `{attached: false, attachError: {message: "no node"}}`) +
				attachment("csi-3", "other.example.com", "px", `{attached: false, attachError: {message: "no node"}}`),
			want: removed(preflight.Warn, "pxd.portworx.com, which takes over, fails at VolumeAttachment csi-1 csi-2 (2 in all)", "oc describe volumeattachment csi-1 csi-2"),
		},
		"PortworxAndCeph": {
			reason: "nobody should delete a volume that only waits for its driver",
			state:  portworx("px") + ceph("shared"),
			want:   removed(preflight.Fail, "for PersistentVolume px (1 in all); nothing in the target serves PersistentVolume shared (1 in all)", "oc delete pv shared"),
		},
		"ClassOnly": {
			reason: "a class that nobody used does no harm, but new claims would wait for ever",
			state:  class("slow", "kubernetes.io/rbd"),
			want:   removed(preflight.Warn, "nothing in the target makes volumes for StorageClass slow (1 in all)", "oc delete storageclass slow"),
		},
		"VolumeAndClass": {
			reason: "the worse comes first",
			state:  class("slow", "kubernetes.io/rbd") + rbd("disk"),
			want:   removed(preflight.Fail, "PersistentVolume disk (1 in all); nothing in the target makes", "oc delete storageclass slow"),
		},
		"Many": {
			reason: "of many not all are named",
			state:  many.String(),
			want:   removed(preflight.Fail, "disk-08 disk-09 (12 in all)", "oc delete pv disk-00 disk-01"),
		},
		"Forbidden": {
			reason: "without permission it cannot tell, and names what is missing",
			ask:    stage.AskAsStranger,
			want: checktest.Want{
				Outcome: preflight.Unknown, Reason: "CheckError",
				Says: []string{"cannot look at the storage: csidrivers.storage.k8s.io is forbidden"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stage.Apply(t, tc.state)
			ask := stage.Ask
			if tc.ask != nil {
				ask = tc.ask
			}
			ask(t).Expect(t, tc.reason, "VolumePlugins", tc.want)
		})
	}
}

func TestJob(t *testing.T) {
	checktest.New(t, local, "openshift-cluster-storage-operator", "storage-preflight").ExpectJob(t)
}
