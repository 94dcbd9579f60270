package machine

import (
	"context"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	nameCertificateRequests = finding.NewName("CertificateRequests",
		"Checks for CertificateSigningRequests of kubelets that have been pending for five minutes. It concerns every update, and "+
			"warns: nodes keep running until their certificates expire, but a machine that the update adds does not join.")

	reasonRequestsPending = finding.NewReason("RequestsPending", finding.Explanation{
		Meaning: "Kubelets wait for certificates. Machines that the update adds do not join the cluster meanwhile.",
		Cause: "The cluster-machine-approver does not approve the requests, because it finds no machine for them, is not running, or " +
			"ignores all requests while too many are pending. A kubelet whose certificate expires is NotReady, and logs of pods on a " +
			"node without a serving certificate cannot be read.",
		Remedy:  "Check that each request comes from a node of this cluster, then approve it.",
		Command: "oc adm certificate approve NAME",
	})
)

const (
	// approvalTime is how long the approval of a request may take.
	approvalTime = 5 * time.Minute
	// recentTime is the age up to which the cluster-machine-approver counts a request, and
	// approverLimit is how many more than machines it tolerates (pkg/controller/csr_check.go,
	// maxPendingDelta and maxDiffBetweenPendingCSRsAndMachinesCount).
	recentTime    = time.Hour
	approverLimit = 100
	maxApproved   = 20
)

// CertificateRequests is the check CertificateRequests.
func CertificateRequests() check.Check {
	return check.Check{
		Name: nameCertificateRequests, Kind: finding.SourceHealth,
		Reads: []access.Request{check.List(certificatesv1.GroupName, "certificatesigningrequests"), check.List("", "nodes")},
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			requests, err := s.Cluster.CertificateSigningRequests(ctx)
			if err != nil {
				return check.Unread("CertificateSigningRequests", err), ctx.Err()
			}
			ctx, missing := gap.Watch(ctx)
			nodes, err := s.Cluster.Nodes(ctx)
			if err != nil {
				return check.Unread("nodes", err), ctx.Err()
			}
			machines := len(nodes)
			if missing.Err() != nil {
				machines = len(requests) // their number is unknown: too many requests are not known to be
			}
			return []finding.Finding{judgeRequests(gap.ExtentOf(ctx), requests, machines, s.Now)}, nil
		},
	}
}

func judgeRequests(read gap.Extent, requests []certificatesv1.CertificateSigningRequest, nodes int, now time.Time) finding.Finding {
	var pending []certificatesv1.CertificateSigningRequest
	recent := 0
	for _, request := range requests {
		age := now.Sub(request.CreationTimestamp.Time)
		if !ofKubelet(request) || len(request.Status.Conditions) > 0 {
			continue
		}
		if age < recentTime {
			recent++
		}
		if age >= approvalTime {
			pending = append(pending, request)
		}
	}
	if len(pending) == 0 {
		return finding.Pass(read, reasonAsExpected, "no kubelet waits for a certificate")
	}
	slices.SortStableFunc(pending, func(a, b certificatesv1.CertificateSigningRequest) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return pendingRequests(pending, nodes, recent, now)
}

func pendingRequests(pending []certificatesv1.CertificateSigningRequest, nodes, recent int, now time.Time) finding.Finding {
	var names []string
	var objects []finding.Object
	for _, request := range pending {
		names = append(names, request.Name)
		objects = append(objects, finding.Object{
			APIVersion: certificatesv1.SchemeGroupVersion.String(), Kind: "CertificateSigningRequest",
			Name: request.Name,
		})
	}
	message := fmt.Sprintf("%s of kubelets not approved, the oldest for %s: %s", words.Count(len(pending), "certificate request"),
		now.Sub(pending[0].CreationTimestamp.Time).Round(time.Minute), words.List(names, maxApproved))
	if recent > nodes+approverLimit {
		message += fmt.Sprintf("; %d are from the last hour, and with more than %d above the machines the cluster-machine-approver "+
			"ignores all requests", recent, approverLimit)
	}
	return finding.Warn(reasonRequestsPending, "%s", message).
		Do(finding.Read("oc get certificatesigningrequests"),
			finding.Change("oc adm certificate approve %s", names[:min(len(names), maxApproved)])).
		About(objects...)
}

func ofKubelet(request certificatesv1.CertificateSigningRequest) bool {
	return request.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName ||
		request.Spec.SignerName == certificatesv1.KubeletServingSignerName
}
