package clusterversion

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	nameTracked = finding.NewName("ClusterVersionTracked",
		"The gate about a ClusterVersion that Argo CD tracks. It is part of the check ClusterVersionRequest, "+
			"concerns every update, and only warns.")
	nameForce = finding.NewName("ClusterVersionForce",
		"The gate about force: true that stays in spec.desiredUpdate of ClusterVersion. It is part of the check "+
			"ClusterVersionRequest, concerns every update, and only warns.")

	reasonTrackedByArgoCD = finding.NewReason("TrackedByArgoCD", finding.Explanation{
		Meaning: "Reported when an Application of Argo CD tracks ClusterVersion. With automatic sync, a spec.desiredUpdate in Git " +
			"starts an update when it is synced; with self-heal, it replaces the update that `oc adm upgrade` has requested.",
		Cause: "Argo CD has applied ClusterVersion: its annotation argocd.argoproj.io/tracking-id names it, or its label of the " +
			"instance was applied by Argo CD. Another object's annotation, and a label that Argo CD did not apply, do not count.",
		Remedy: "Change spec.desiredUpdate in Git after the preflight is Ready, or have the Application ignore it: " +
			"spec.ignoreDifferences with the pointer /spec/desiredUpdate, and the sync option RespectIgnoreDifferences=true.",
		Command: "oc get clusterversion version --show-managed-fields -o yaml",
	})
	reasonForceStays = finding.NewReason("ForceStays", finding.Explanation{
		Meaning: "Reported when spec.desiredUpdate of ClusterVersion has force: true. A program that changes only the version of it, " +
			"as a ClusterCurator does, requests the next update by force: CVO verifies neither its signature nor the preconditions.",
		Cause:   "An update was forced, by an administrator or a ClusterCurator, and force was not removed.",
		Remedy:  "Remove force once no update is in progress.",
		Command: `oc patch clusterversion version --type json --patch '[{"op":"remove","path":"/spec/desiredUpdate/force"}]'`,
	})
)

// How Argo CD marks the objects of an Application (util/argo/resource_tracking.go): by an annotation
// APPLICATION:GROUP/KIND:NAMESPACE/NAME, or by a label. The name of the latter is an option, by default one
// that others use as well, and the documentation recommends one of its own domain.
const (
	trackingAnnotation = "argocd.argoproj.io/tracking-id"
	trackingLabel      = "argocd.argoproj.io/instance"
	instanceLabel      = "app.kubernetes.io/instance"
	// argoManager begins the names by which Argo CD applies objects: argocd-controller on the server
	// side, argocd-application-controller otherwise.
	argoManager = "argocd-"
)

// application is the Application of Argo CD that tracks an object of a kind, GROUP/KIND; empty for none.
func application(object metav1.Object, kind string) string {
	if id := strings.Split(object.GetAnnotations()[trackingAnnotation], ":"); len(id) == 3 {
		_, name, _ := strings.Cut(id[2], "/")
		if id[1] == kind && name == object.GetName() {
			return id[0]
		}
	}
	labels := object.GetLabels()
	if name := labels[trackingLabel]; name != "" {
		return name
	}
	applied := slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return strings.HasPrefix(entry.Manager, argoManager)
	})
	if applied {
		return labels[instanceLabel]
	}
	return ""
}

func (s situation) writers() []finding.Finding {
	var findings []finding.Finding
	if name := application(s.version, "config.openshift.io/ClusterVersion"); name != "" {
		findings = append(findings, finding.Warn(reasonTrackedByArgoCD,
			"the Application %s of Argo CD tracks ClusterVersion: with automatic sync, a spec.desiredUpdate in Git starts an update when it is synced, "+
				"and with self-heal it replaces the one that \"oc adm upgrade\" has requested", cmp.Or(words.External(name), "without a name")).
			Named(nameTracked).Do(finding.Read("oc get clusterversion version --show-managed-fields -o yaml")))
	}
	if request := s.version.Spec.DesiredUpdate; request != nil && request.Force {
		findings = append(findings, finding.Warn(reasonForceStays,
			"spec.desiredUpdate of ClusterVersion has force: true, so a program that changes only its version, such as ClusterCurator, requests the next "+
				"update without verification of its signature and of the preconditions").
			Named(nameForce).Do(finding.Change(`oc patch clusterversion version --type json --patch [{"op":"remove","path":"/spec/desiredUpdate/force"}]`)))
	}
	return findings
}
