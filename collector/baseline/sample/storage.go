package sample

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
)

var _ = finding.Explain("A volume or a PersistentVolumeClaim has a problem after the update that it did not have before.", `
AttachFailed | The CSI driver could not attach it to the node of its pod. | Read the error of the VolumeAttachment. | oc get volumeattachments -o yaml
Lost | Its PersistentVolume does not exist any more. | Restore the volume, or create the claim again from a backup.
NotBound | Its StorageClass has no provisioner that works. | Read the events of the claim. | oc describe persistentvolumeclaim NAME -n NAMESPACE`)

// attachment is a VolumeAttachment (storage.k8s.io/v1).
type attachment struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		NodeName string `json:"nodeName"`
		Source   struct {
			PersistentVolumeName string `json:"persistentVolumeName"`
		} `json:"source"`
	} `json:"spec"`
	Status struct {
		// AttachError is nil for one that was attached, or is being attached.
		AttachError *struct {
			Time    metav1.Time `json:"time"`
			Message string      `json:"message"`
		} `json:"attachError"`
	} `json:"status"`
}

func (s *sampler) storage(ctx context.Context) {
	classes := readAs[storagev1.StorageClass](ctx, s, storageClasses(), baseline.StorageClass, baseline.PersistentVolumeClaim)
	waits := map[string]bool{}
	for i := range classes {
		mode := classes[i].VolumeBindingMode
		waits[classes[i].Name] = mode != nil && *mode == storagev1.VolumeBindingWaitForFirstConsumer
		s.keep(baseline.Key{Kind: baseline.StorageClass, Name: classes[i].Name}, baseline.Object{})
	}
	drivers := readAs[metav1.PartialObjectMetadata](ctx, s, csiDrivers(), baseline.CSIDriver)
	for i := range drivers {
		s.keep(baseline.Key{Kind: baseline.CSIDriver, Name: drivers[i].Name}, baseline.Object{})
	}
	complete := s.complete(baseline.StorageClass)
	found := kept(readAs[corev1.PersistentVolumeClaim](ctx, s, claims(), baseline.PersistentVolumeClaim))
	for i := range found {
		of := &found[i]
		class := ""
		if of.Spec.StorageClassName != nil {
			class = *of.Spec.StorageClassName
		}
		mayWait, known := waits[class]
		mayWait = mayWait || !known && class != "" && !complete
		object := baseline.Object{Detail: fact(string(of.Status.Phase))}
		if problem, exists := unbound(of, class); exists && (of.Status.Phase != corev1.ClaimPending || !mayWait) {
			object.Add(problem)
		}
		s.keep(baseline.Key{Kind: baseline.PersistentVolumeClaim, Namespace: of.Namespace, Name: of.Name}, object)
	}
	s.attachments(ctx)
}

// unbound is the problem of a claim without a volume; false where it has one.
func unbound(of *corev1.PersistentVolumeClaim, class string) (baseline.Problem, bool) {
	switch of.Status.Phase {
	case corev1.ClaimBound:
		return baseline.Problem{}, false
	case corev1.ClaimLost:
		return baseline.Problem{Reason: "Lost", Message: fmt.Sprintf("its PersistentVolume %s does not exist", words.External(of.Spec.VolumeName))}, true
	case corev1.ClaimPending:
	}
	message := "it is not bound, and has no StorageClass"
	if class != "" {
		message = "it is not bound, and has StorageClass " + words.External(class)
	}
	return baseline.Problem{Reason: "NotBound", Since: at(of.CreationTimestamp), Message: message}, true
}

// attachments are those that have failed, by their PersistentVolume: the name of a VolumeAttachment does not survive a move to
// another node.
func (s *sampler) attachments(ctx context.Context) {
	found := readAs[attachment](ctx, s, attachments(), baseline.VolumeAttachment)
	for i := range found {
		of := &found[i]
		failed := of.Status.AttachError
		if failed == nil || of.DeletionTimestamp != nil || of.Spec.Source.PersistentVolumeName == "" {
			continue
		}
		object := baseline.Object{}
		object.Add(baseline.Problem{Reason: "AttachFailed", Since: at(failed.Time), Message: cmp.Or(words.External(failed.Message), "it cannot be attached"), Node: fact(of.Spec.NodeName)})
		s.keep(baseline.Key{Kind: baseline.VolumeAttachment, Name: of.Spec.Source.PersistentVolumeName}, object)
	}
}
