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

// Portworx is the only one of the removed plugins whose volumes Kubernetes migrates to
// a CSI driver, if that driver is installed.
const portworx, portworxCSI = "kubernetes.io/portworx-volume", "pxd.portworx.com"

// pluginOf returns the removed plugin of a volume; empty if the target has its driver.
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

// volumePlugins fails for volumes that no driver of the target serves. It warns of
// storage classes that cannot provision volumes, and of a CSI driver with errors.
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
		return fmt.Errorf("cannot read the storage: %w", err)
	}

	removed := []string{"kubernetes.io/cephfs", "kubernetes.io/glusterfs", "kubernetes.io/rbd"}
	if !slices.ContainsFunc(drivers.Items, func(d storagev1.CSIDriver) bool { return d.Name == portworxCSI }) {
		removed = append(removed, portworx)
	}
	var waiting, unserved, useless, failing []string
	for _, v := range volumes.Items {
		switch plugin := pluginOf(v.Spec.PersistentVolumeSource); {
		case !slices.Contains(removed, plugin):
		case plugin == portworx:
			waiting = append(waiting, v.Name)
		default:
			unserved = append(unserved, v.Name)
		}
	}
	for _, c := range classes.Items {
		if slices.Contains(removed, c.Provisioner) {
			useless = append(useless, c.Name)
		}
	}
	for _, a := range attachments.Items {
		if a.Spec.Attacher == portworxCSI && cmp.Or(a.Status.DetachError, a.Status.AttachError) != nil {
			failing = append(failing, a.Name)
		}
	}
	report(t, t.Failf, "the CSI driver "+portworxCSI+" is not installed and required for PersistentVolume", waiting,
		remedy{"Install the CSI driver with the operator of its vendor.", "oc get pv"})
	report(t, t.Failf, "no driver of the target serves PersistentVolume", unserved,
		remedy{"Copy the data to volumes of a CSI driver, then delete the old claims and volumes: Kubernetes keeps a volume " +
			"until its claim is deleted.", "oc delete pv"})
	report(t, t.Warnf, "no driver of the target provisions volumes for StorageClass", useless,
		remedy{"Delete the StorageClasses without a driver.", "oc delete storageclass"})
	report(t, t.Warnf, "the CSI driver "+portworxCSI+" reports errors for VolumeAttachment", failing,
		remedy{"Read the errors.", "oc describe volumeattachment"})
	return nil
}

// remedy is how to fix objects, and the command, without their names.
type remedy struct{ text, command string }

// report reports the first ten objects, if any, with their remedy and its command.
func report(t *preflight.T, outcomef func(string, ...any), what string, names []string, how remedy) {
	if len(names) > 0 {
		first := strings.Join(names[:min(10, len(names))], " ")
		t.Reason("VolumePluginRemoved")
		outcomef("%s %s (%d in total)", what, first, len(names))
		t.Remedyf("%s", how.text)
		t.Commandf("%s %s", how.command, first)
	}
}

// connect uses the same configuration as oc; in a pod, the configuration of the pod.
func connect() (kubernetes.Interface, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot load the configuration of the cluster: %w", err)
	}
	return kubernetes.NewForConfig(config)
}
