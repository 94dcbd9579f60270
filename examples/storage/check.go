package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Of the plugins that the target does not have, Portworx is the one whose
// volumes Kubernetes hands to a CSI driver, where it is installed.
const portworx, portworxCSI = "kubernetes.io/portworx-volume", "pxd.portworx.com"

// pluginOf is the plugin of a volume; empty when the target has its driver.
func pluginOf(source corev1.PersistentVolumeSource) string {
	switch {
	case source.CephFS != nil:
		return "kubernetes.io/cephfs"
	case source.Glusterfs != nil:
		return "kubernetes.io/glusterfs"
	case source.RBD != nil:
		return "kubernetes.io/rbd"
	case source.PortworxVolume != nil:
		return portworx
	}
	return ""
}

// volumePlugins fails for volumes that nothing in the target serves. It warns of
// classes that could make no more, and of a successor that fails already.
func volumePlugins(ctx context.Context, t *preflight.T) error {
	kube, err := connect()
	if err != nil {
		return err
	}
	drivers, errDrivers := kube.StorageV1().CSIDrivers().List(ctx, metav1.ListOptions{})
	volumes, errVolumes := kube.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	classes, errClasses := kube.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	attachments, errAttachments := kube.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err := cmp.Or(errDrivers, errVolumes, errClasses, errAttachments); err != nil {
		return fmt.Errorf("cannot look at the storage: %w", err)
	}

	lost := []string{"kubernetes.io/cephfs", "kubernetes.io/glusterfs", "kubernetes.io/rbd"}
	if !slices.ContainsFunc(drivers.Items, func(d storagev1.CSIDriver) bool { return d.Name == portworxCSI }) {
		lost = append(lost, portworx)
	}
	var waiting, unserved, useless, failing []string
	for _, v := range volumes.Items {
		switch plugin := pluginOf(v.Spec.PersistentVolumeSource); {
		case !slices.Contains(lost, plugin):
		case plugin == portworx:
			waiting = append(waiting, v.Name)
		default:
			unserved = append(unserved, v.Name)
		}
	}
	for _, c := range classes.Items {
		if slices.Contains(lost, c.Provisioner) {
			useless = append(useless, c.Name)
		}
	}
	for _, a := range attachments.Items {
		if a.Spec.Attacher == portworxCSI && cmp.Or(a.Status.DetachError, a.Status.AttachError) != nil {
			failing = append(failing, a.Name)
		}
	}
	report(t, t.Failf, portworxCSI+", which has to take over, is not installed for PersistentVolume", waiting, "Install the CSI driver with the operator of its vendor, for")
	report(t, t.Failf, "nothing in the target serves PersistentVolume", unserved, "Copy the data to volumes of a CSI driver, then: oc delete pv")
	report(t, t.Warnf, "nothing in the target makes volumes for StorageClass", useless, "oc delete storageclass")
	report(t, t.Warnf, portworxCSI+", which takes over, fails at VolumeAttachment", failing, "oc describe volumeattachment")
	return nil
}

// report names the first ten objects, if there are any, and what to do with them.
func report(t *preflight.T, say func(string, ...any), what string, names []string, remedy string) {
	if len(names) > 0 {
		first := strings.Join(names[:min(10, len(names))], " ")
		t.Reason("VolumePluginRemoved")
		say("%s %s (%d in all)", what, first, len(names))
		t.Remedyf("%s %s", remedy, first)
	}
}

// connect finds the cluster as oc does; in a pod, that of the pod.
func connect() (kubernetes.Interface, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot find the cluster: %w", err)
	}
	return kubernetes.NewForConfig(config)
}
