package sample

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/words"
)

var _ = catalog.Reasons("The ClusterVersion, a ClusterOperator or a certificate request has a problem after the update that it did not have before.", `
Degraded | Its condition Degraded is True; of a NodePool, the update of a node in place has failed. | Read the message of the condition. | oc describe KIND NAME
Failing | The cluster-version operator cannot apply the release. | Read the message of the condition. | oc describe clusterversion
ImplicitlyEnabledCapabilities | The new release enabled a capability that was not requested, because the cluster uses a part of it. | Add the capability to
	spec.capabilities of ClusterVersion, or leave it enabled.
Invalid | The new release rejects the spec of the ClusterVersion. | Correct what the message of the condition names. | oc describe clusterversion
OutdatedVersion | It states another version than the release, although the update is complete. | Read its conditions. | oc describe clusteroperator NAME
Pending | The request of a kubelet or of a user is neither approved nor denied, often since the cluster-machine-approver does not know the node. | Check it, then
	approve it. | oc adm certificate approve NAME`)

func (s *sampler) clusterVersion(version *configv1.ClusterVersion) {
	object := baseline.Object{Release: true} // the request of an update changes the generation
	states := conditionsOf(version.Status.Conditions, ofOperator)
	for _, kind := range []string{"Failing", "Invalid", "ImplicitlyEnabledCapabilities"} {
		if of := states.of(kind); of.Status == conditionTrue {
			object.Add(of.problem(kind))
		}
	}
	s.keep(baseline.Key{Kind: baseline.ClusterVersion, Name: version.Name}, object)
}

// operators are the ClusterOperators but that of the preflight itself.
func (s *sampler) operators(found []configv1.ClusterOperator, version *configv1.ClusterVersion) {
	history := version.Status.History
	completed := len(history) > 0 && history[0].State == configv1.CompletedUpdate
	for i := range found {
		operator := &found[i]
		if operator.Name == ownsignal.ClusterOperator {
			continue
		}
		object := operatorOf(operator)
		s.describe(&object, operator, configv1.GroupName, "clusteroperators")
		object.Release = true
		if completed && object.Detail != "" && object.Detail != version.Status.Desired.Version {
			object.Add(baseline.Problem{Reason: "OutdatedVersion", Message: fmt.Sprintf("it has version %s instead of %s", object.Detail, words.External(version.Status.Desired.Version))})
		}
		s.keep(baseline.Key{Kind: baseline.ClusterOperator, Name: operator.Name}, object)
	}
}

func operatorOf(operator *configv1.ClusterOperator) baseline.Object {
	object := baseline.Object{Generation: operator.Generation}
	states := conditionsOf(operator.Status.Conditions, ofOperator)
	if of := states.of("Available"); of.Status != conditionTrue {
		object.Add(of.problem("Unavailable"))
	}
	for _, kind := range []string{"Degraded", "Progressing"} {
		if of := states.of(kind); of.Status == conditionTrue {
			object.Add(of.problem(kind))
		}
	}
	object.Recovered = recovered(latest(states.of("Available").since(conditionTrue), states.of("Degraded").since(conditionFalse)), operator.CreationTimestamp)
	for _, reported := range operator.Status.Versions {
		if reported.Name == "operator" {
			object.Detail = fact(reported.Version)
		}
	}
	return object
}

// requests are the CertificateSigningRequests that no user or controller has decided about. The others are deleted after an hour or a day.
func (m machinery) requests(ctx context.Context) {
	s := m.sampler
	found := read(ctx, s, s.cluster.CertificateSigningRequests, "CertificateSigningRequests", baseline.CertificateSigningRequest)
	for i := range found {
		request := &found[i]
		if isDecided(request) {
			continue
		}
		object := baseline.Object{Detail: fact(requestedNode(request))}
		object.Add(baseline.Problem{
			Reason: "Pending", Since: at(request.CreationTimestamp),
			Message: fmt.Sprintf("the request of %s for %s is neither approved nor denied", words.External(request.Spec.Username), words.External(request.Spec.SignerName)),
		})
		s.keep(baseline.Key{Kind: baseline.CertificateSigningRequest, Name: request.Name}, object)
	}
}

// nodeUser begins the user name of a kubelet, which the name of its node follows.
const nodeUser = "system:node:"

// requestedNode is the node for which a kubelet requests a certificate; empty for another request. The first request of a kubelet,
// which has no certificate, is by a user that all nodes share.
func requestedNode(request *certificatesv1.CertificateSigningRequest) string {
	if node, ok := strings.CutPrefix(request.Spec.Username, nodeUser); ok {
		return node
	}
	if request.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName {
		return baseline.AnyNode
	}
	return ""
}

func isDecided(request *certificatesv1.CertificateSigningRequest) bool {
	for _, each := range request.Status.Conditions {
		switch each.Type {
		case certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			return true
		}
	}
	return false
}

var _ = catalog.Reasons("An alert of severity warning or critical fires after the update, and did not before.", `
Firing | The alert was not firing before the update. | Follow the runbook that its annotations name. | oc get prometheusrules -A -o yaml`)

// watchdog always fires, so that its absence is noticed.
const watchdog = "Watchdog"

var errNoMonitoring = errors.New("the monitoring was not read")

// readAlerts reads those that fire, the instances of one name, severity and namespace as one object, since the first of them.
func readAlerts(ctx context.Context, s *sampler, client *monitoring.Client) {
	if client == nil {
		s.unread(errNoMonitoring, baseline.Alert)
		return
	}
	active, err := client.Alerts(ctx)
	if err != nil {
		s.unread(err, baseline.Alert)
		return
	}
	for _, each := range active {
		if !counts(each) {
			continue
		}
		severity, alertName := string(each.Labels["severity"]), string(each.Labels[model.AlertNameLabel])
		namespace := fact(string(each.Labels["namespace"]))
		key := baseline.Key{Kind: baseline.Alert, Namespace: namespace, Name: fact(alertName+"/"+severity) + others(each.Labels)}
		firing := baseline.Problem{Reason: "Firing", Since: each.ActiveAt.UTC(), Message: message(each)}
		object, exists := s.state.Objects[key]
		if !exists || firing.Since.Before(object.Problems[0].Since) {
			object.Problems = []baseline.Problem{firing}
		}
		object.Desired++
		object.Release = namespace == "" || s.owners.Namespace(namespace)
		object.Refs = s.about(each.Labels, namespace)
		if !s.state.Leaving[namespace] {
			s.state.Objects[key] = object
		}
	}
}

// instances are the labels that name one of the instances that an alert fires for: the others stay the same for all of them.
func instances() []string { return []string{"pod", "pod_name", "instance", "uid", "container_id"} }

// others are the labels of an alert beside its name, severity, namespace and instance, as they are in a query; empty for none.
func others(all model.LabelSet) string {
	kept := maps.Clone(all)
	for _, name := range append(instances(), model.AlertNameLabel, "severity", "namespace", "prometheus") {
		delete(kept, model.LabelName(name))
	}
	if len(kept) == 0 {
		return ""
	}
	return fact(kept.String())
}

// about are the objects that the labels of an alert name, such as the label "deployment".
func (s *sampler) about(all model.LabelSet, namespace string) []baseline.Key {
	var refs []baseline.Key
	for _, kind := range []baseline.Kind{baseline.Deployment, baseline.StatefulSet, baseline.DaemonSet, baseline.PersistentVolumeClaim, baseline.Service, baseline.Node} {
		named := string(all[model.LabelName(strings.ToLower(string(kind)))])
		key := baseline.Key{Kind: kind, Namespace: namespace, Name: named}
		if kind == baseline.Node {
			key.Namespace = ""
		}
		if named != "" {
			refs = append(refs, key)
		}
	}
	if pod := string(all["pod"]); pod != "" {
		if key, known := s.podController(namespace, pod); known {
			refs = append(refs, key)
		}
	}
	return refs
}

// counts reports whether an alert is about the state of the cluster, and not one of the preflight itself.
func counts(alert prometheusv1.Alert) bool {
	named, namespace := string(alert.Labels[model.AlertNameLabel]), string(alert.Labels["namespace"])
	own := ownsignal.Alert(named, namespace) || alert.Labels["name"] == ownsignal.ClusterOperator
	serious := slices.Contains([]model.LabelValue{"warning", "critical"}, alert.Labels["severity"])
	return alert.State == prometheusv1.AlertStateFiring && serious && !own && named != "" && named != watchdog
}

func message(alert prometheusv1.Alert) string {
	text := cmp.Or(string(alert.Annotations["summary"]), string(alert.Annotations["message"]), string(alert.Annotations["description"]), "it is firing")
	return words.External(text)
}
