package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/examples/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/preflight-sdk/preflighttest"
	"github.com/openshift/update-preflight/test/cluster"
)

var local *cluster.Cluster

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local = c }, cluster.ControlPlaneOnly())
}

// volume returns a PersistentVolume with a source in the flow style of YAML.
func volume(name, source string) string {
	return fmt.Sprintf("---\n{apiVersion: v1, kind: PersistentVolume, metadata: {name: %s}, spec: {capacity: {storage: 1Gi}, "+
		"accessModes: [ReadWriteMany], %s}}\n", name, source)
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

// attachment returns a VolumeAttachment of volume with a status.
func attachment(name, attacher, volume, status string) string {
	return fmt.Sprintf("---\n{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: %s}, spec: {attacher: %s, "+
		"nodeName: worker-0, source: {persistentVolumeName: %s}}, status: %s}\n",
		name, attacher, volume, status)
}

func TestVolumePlugins(t *testing.T) {
	env := checktest.New(t, local, "openshift-cluster-storage-operator", "storage-preflight")

	var many strings.Builder
	for i := range 12 {
		many.WriteString(rbd(fmt.Sprintf("disk-%02d", i)))
	}
	removed := func(outcome preflight.Outcome, message, remedy string) checktest.Want {
		return checktest.Want{Outcome: outcome, Reason: "VolumePluginRemoved", Messages: []string{message}, Remedies: []string{remedy}}
	}
	pass := checktest.Want{Outcome: preflight.Pass, Reason: "Passed"}
	for name, tc := range map[string]struct {
		reason string
		state  string
		run    func(*testing.T, ...string) checktest.Report
		want   checktest.Want
	}{
		"NoStorage": {
			reason: "a cluster without storage passes",
			want:   pass,
		},
		"Current": {
			reason: "the target supports CSI and NFS",
			state: volume("csi", "csi: {driver: rbd.csi.ceph.com, volumeHandle: disk}") + volume("nfs",
				"nfs: {server: nfs.example.com, path: /vol}") +
				class("ceph", "rbd.csi.ceph.com") + driver("rbd.csi.ceph.com") + attachment("a", "rbd.csi.ceph.com", "csi", "{attached: true}"),
			want: pass,
		},
		"CephFS": {
			reason: "Kubernetes 1.31 has no CephFS plugin and no migration",
			state:  ceph("shared"),
			want: removed(preflight.Fail, "no driver of the target serves PersistentVolume shared (1 in total)",
				"Copy the data to volumes of a CSI driver, then delete the old claims and volumes: Kubernetes keeps a volume "+
					"until its claim is deleted.\noc delete pv shared"),
		},
		"CephCSI": {
			reason: "the CSI driver of Ceph cannot serve volumes that it did not provision",
			state:  rbd("disk") + driver("rbd.csi.ceph.com"),
			want:   removed(preflight.Fail, "PersistentVolume disk ", "oc delete pv disk"),
		},
		"Gluster": {
			reason: "Kubernetes 1.26 removed GlusterFS, but volumes may still exist",
			state:  gluster("old"),
			want:   removed(preflight.Fail, "PersistentVolume old ", "oc delete pv old"),
		},
		"Portworx": {
			reason: "the migration of Portworx requires its CSI driver",
			state:  portworx("px"),
			want: removed(preflight.Fail, "the CSI driver pxd.portworx.com is not installed and required for PersistentVolume px (1 in total)",
				"Install the CSI driver with the operator of its vendor.\noc get pv px"),
		},
		"PortworxMigrated": {
			reason: "with the CSI driver, volumes and storage classes of Portworx are migrated",
			state: portworx("px") + class("px", "kubernetes.io/portworx-volume") + driver("pxd.portworx.com") +
				attachment("a", "pxd.portworx.com", "px", "{attached: true}"),
			want: pass,
		},
		"PortworxFailing": {
			reason: "errors of the CSI driver result in a warning, because the update reattaches all volumes",
			state: portworx("px") + driver("pxd.portworx.com") +
				attachment("csi-1", "pxd.portworx.com", "px", `{attached: true, detachError: {message: "timeout"}}`) +
				attachment("csi-2", "pxd.portworx.com", "px", `{attached: false, attachError: {message: "no node"}}`) +
				attachment("csi-3", "other.example.com", "px", `{attached: false, attachError: {message: "no node"}}`),
			want: removed(preflight.Warn, "the CSI driver pxd.portworx.com reports errors for VolumeAttachment csi-1 csi-2 (2 in total)",
				"oc describe volumeattachment csi-1 csi-2"),
		},
		"PortworxAndCeph": {
			reason: "the remedy does not delete a volume that only requires its driver",
			state:  portworx("px") + ceph("shared"),
			want: removed(preflight.Fail, "for PersistentVolume px (1 in total); no driver of the target serves PersistentVolume shared "+
				"(1 in total)", "oc delete pv shared"),
		},
		"ClassOnly": {
			reason: "a storage class without volumes results in a warning, because new claims would stay pending",
			state:  class("slow", "kubernetes.io/rbd"),
			want: removed(preflight.Warn, "no driver of the target provisions volumes for StorageClass slow (1 in total)",
				"oc delete storageclass slow"),
		},
		"VolumeAndClass": {
			reason: "the fail comes before the warning",
			state:  class("slow", "kubernetes.io/rbd") + rbd("disk"),
			want:   removed(preflight.Fail, "PersistentVolume disk (1 in total); no driver of the target provisions", "oc delete storageclass slow"),
		},
		"Many": {
			reason: "the message names the first ten volumes",
			state:  many.String(),
			want:   removed(preflight.Fail, "disk-08 disk-09 (12 in total)", "oc delete pv disk-00 disk-01"),
		},
		"Forbidden": {
			reason: "without permission the check is inconclusive, and the message names the missing permission",
			run:    env.RunUnprivileged,
			want: checktest.Want{
				Outcome: preflight.Unknown, Reason: "CheckError",
				Messages: []string{"cannot read the storage: csidrivers.storage.k8s.io is forbidden"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			env.Apply(t, tc.state)
			run := env.Run
			if tc.run != nil {
				run = tc.run
			}
			run(t).Expect(t, tc.reason, "VolumePlugins", tc.want)
		})
	}

	t.Run("Output", func(t *testing.T) {
		env.Apply(t, ceph("shared"))
		env.ExpectOutput(t)
	})
}

func TestJob(t *testing.T) {
	checktest.New(t, local, "openshift-cluster-storage-operator", "storage-preflight").ExpectJob(t)
}

func TestManifest(t *testing.T) {
	preflighttest.Manifest(t, ".", "manifests/0000_50_cluster-storage-operator_10_preflight.yaml", preflight.ManifestOptions{
		Name:      "storage-preflight",
		Namespace: "openshift-cluster-storage-operator",
		Image:     "quay.io/openshift/origin-cluster-storage-operator:latest",
	})
}
