// Package serving answers: does the API server of this cluster serve every API, and can it
// delete what is being deleted?
//
// Garbage collection, the deletion of namespaces and the migration of stored objects stop at
// an API that is not served. Few of these conditions stop the cluster-version operator itself,
// so most findings warn.
package serving

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

// Checks are all checks of what is served. A new one is added here.
func Checks() []check.Check {
	return []check.Check{APIServices(), Namespaces(), Conversions()}
}

var reasonAsExpected = finding.NewReason("AsExpected", finding.Explanation{
	Meaning: "Reported when the API server serves and deletes what it should.",
	Cause:   "What the check looks for was not found.",
})

var (
	nameAPIServices = finding.NewName("APIServices",
		"The check for APIServices that are not available: a finding APIService-<name> for each. It concerns "+
			"every update, and warns.")

	nameAPIService = finding.NewName("APIService",
		"A finding of the check APIServices about one that is not available: APIService-<name>.")

	reasonAPIServiceUnavailable = finding.NewReason("APIServiceUnavailable", finding.Explanation{
		Meaning: "Reported for a version of an API group that is not served.",
		Cause: "The condition Available of its APIService is not True: its server is not installed any more, has no " +
			"ready pod, or cannot be reached. The deletion of every namespace stops " +
			"(NamespaceDeletionDiscoveryFailure), and the discovery of all APIs is incomplete.",
		Remedy: "Repair the server. Delete the APIService of one that was removed, and first the operator that creates it again.",
	})
)

// maxCause bounds the words of a condition, in bytes.
const maxCause = 512

// ofTheRelease is true for the namespace of servers whose ClusterOperator reports that they
// are not available: one cause is one finding.
func ofTheRelease(namespace string) bool {
	return namespace == "openshift-apiserver" || namespace == "openshift-oauth-apiserver"
}

// APIServices is the check APIServices.
func APIServices() check.Check {
	return check.Check{
		Name: nameAPIServices, Kind: finding.SourceHealth,
		Reads: []access.Request{check.List("apiregistration.k8s.io", "apiservices")},
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			all, err := s.Cluster.APIServices(ctx)
			if err != nil {
				return check.Unread("APIServices", err), ctx.Err()
			}
			var drafts []finding.Finding
			for i := range all {
				if f, ok := judgeAPIService(&all[i]); ok {
					drafts = append(drafts, f)
				}
			}
			if len(drafts) == 0 {
				return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), reasonAsExpected, "all %d APIServices are available", len(all))}, nil
			}
			return finding.Bounded(finding.Drafts(drafts...)), nil
		},
	}
}

func judgeAPIService(service *snapshot.APIService) (finding.Finding, bool) {
	backend := service.Spec.Service
	available := meta.FindStatusCondition(service.Status.Conditions, "Available")
	if backend == nil || ofTheRelease(backend.Namespace) || available != nil && available.Status == metav1.ConditionTrue {
		return finding.Finding{}, false
	}
	cause := "it has no condition Available"
	if available != nil {
		cause = "Available=" + words.Condition(available.Status, words.Line(available.Reason, maxCause), words.Line(available.Message, maxCause))
	}
	return finding.Warn(reasonAPIServiceUnavailable,
		"APIService %s, which the Service %s/%s serves, is not available, so no namespace can be deleted: %s", service.Name, backend.Namespace, backend.Name, cause).
		Named(nameAPIService+"-"+service.Name).
		Remedy("Repair the server. If it was removed, delete the APIService%s: oc delete apiservice %s.", unlessOwned(service), service.Name).
		Do(finding.Read("oc -n %s get service,pods", backend.Namespace), finding.Read("oc get apiservice %s -o yaml", service.Name)).
		About(finding.Object{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService", Name: service.Name}), true
}

// unlessOwned is what deletes the APIService of an operator that OLM has installed: OLM creates it again while the
// ClusterServiceVersion exists (operator-lifecycle-manager pkg/lib/ownerutil labels it).
func unlessOwned(service *snapshot.APIService) string {
	owner, namespace := service.Labels["olm.owner"], service.Labels["olm.owner.namespace"]
	if owner == "" || namespace == "" {
		return ""
	}
	return fmt.Sprintf(", after ClusterServiceVersion %s/%s, for which OLM creates it again", namespace, owner)
}
