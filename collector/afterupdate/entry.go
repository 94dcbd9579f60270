package afterupdate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector/afterupdate/regression"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/settling"
	"github.com/openshift/update-preflight/collector/words"
)

// listed are the entries of causes, at most MaxListed, and how many there are.
func (j judge) listed(causes []cause) ([]Regression, int) {
	entries := make([]Regression, 0, min(len(causes), MaxListed))
	for _, each := range causes[:min(len(causes), MaxListed)] {
		root := each.found[0]
		since := j.course.since[problem{root.Key, root.Problem.Reason}]
		root.Key = j.course.named(root.Key)
		entry := Regression{
			Name: nameOf(root), Object: objectOf(root.Key), Was: root.Was, Is: isOf(root), Since: timeOf(since),
			Step: stepOf(j.course.progress.Steps, root, since), Command: inspect(root.Key).Command, Action: inspect(root.Key),
		}
		for _, follows := range each.found[1:min(len(each.found), maxFolded+1)] {
			follows.Key = j.course.named(follows.Key)
			entry.Follows = append(entry.Follows, Folded{Name: nameOf(follows), Object: objectOf(follows.Key), Is: isOf(follows)})
		}
		entry.Unlisted = len(each.found) - 1 - len(entry.Follows)
		entries = append(entries, entry)
	}
	return entries, len(causes)
}

// maxFolded bounds the problems of a cause that are listed.
const maxFolded = 20

// named is the key with the name of its object, also where the state has a hash of it.
func (c Course) named(key baseline.Key) baseline.Key {
	if name, redacted := c.names[key]; redacted {
		return name
	}
	return key
}

// maxText bounds a clause of an entry, in bytes.
const maxText = 500

func isOf(found regression.Found) string {
	return words.Line(strings.TrimSuffix(found.Problem.Reason+": "+found.Problem.Message, ": "), maxText)
}

// notInName are the characters that no name of a finding has.
var notInName = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// nameOf is the name of a finding. It has the name of an object only if the release decides about that.
func nameOf(found regression.Found) string {
	key := found.Key
	name := string(key.Kind) + found.Problem.Reason
	alert, _, _ := strings.Cut(key.Name, "/")
	switch {
	case key.Kind == baseline.Alert && (key.Namespace == "" || key.Platform()):
		name = "AlertFiring-" + alert
	case key.Kind == baseline.ClusterOperator, isPlatformWorkload(key):
		name += "-" + key.Name
	}
	return notInName.ReplaceAllString(name, "-")
}

func isPlatformWorkload(key baseline.Key) bool {
	workloads := []baseline.Kind{baseline.Deployment, baseline.StatefulSet, baseline.DaemonSet, baseline.Service}
	return slices.Contains(workloads, key.Kind) && key.Platform()
}

// resource is how an API names a kind.
type resource struct{ version, plural string }

func resources() map[baseline.Kind]resource {
	return map[baseline.Kind]resource{
		baseline.ClusterVersion:            {"config.openshift.io/v1", "clusterversion"},
		baseline.ClusterOperator:           {"config.openshift.io/v1", "clusteroperator"},
		baseline.MachineConfigPool:         {"machineconfiguration.openshift.io/v1", "machineconfigpool"},
		baseline.MachineSet:                {"machine.openshift.io/v1beta1", "machineset.machine.openshift.io"},
		baseline.Node:                      {"v1", "node"},
		baseline.CSINode:                   {"storage.k8s.io/v1", "csinode"},
		baseline.CertificateSigningRequest: {"certificates.k8s.io/v1", "certificatesigningrequest"},
		baseline.Deployment:                {"apps/v1", "deployment"},
		baseline.StatefulSet:               {"apps/v1", "statefulset"},
		baseline.DaemonSet:                 {"apps/v1", "daemonset"},
		baseline.ReplicationController:     {"v1", "replicationcontroller"},
		baseline.Service:                   {"v1", "service"},
		baseline.Route:                     {"route.openshift.io/v1", "route"},
		baseline.IngressController:         {"operator.openshift.io/v1", "ingresscontroller"},
		baseline.APIService:                {"apiregistration.k8s.io/v1", "apiservice"},
		baseline.CustomResourceDefinition:  {"apiextensions.k8s.io/v1", "customresourcedefinition"},
		baseline.ValidatingWebhook:         {"admissionregistration.k8s.io/v1", "validatingwebhookconfiguration"},
		baseline.MutatingWebhook:           {"admissionregistration.k8s.io/v1", "mutatingwebhookconfiguration"},
		baseline.StorageClass:              {"storage.k8s.io/v1", "storageclass"},
		baseline.CSIDriver:                 {"storage.k8s.io/v1", "csidriver"},
		baseline.PersistentVolumeClaim:     {"v1", "persistentvolumeclaim"},
		baseline.VolumeAttachment:          {"storage.k8s.io/v1", "volumeattachment"},
		baseline.ClusterServiceVersion:     {"operators.coreos.com/v1alpha1", "clusterserviceversion"},
		baseline.Subscription:              {"operators.coreos.com/v1alpha1", "subscription.operators.coreos.com"},
		baseline.EgressIP:                  {"k8s.ovn.org/v1", "egressip"},
		baseline.EgressFirewall:            {"k8s.ovn.org/v1", "egressfirewall"},
		baseline.HostedCluster:             {"hypershift.openshift.io/v1beta1", "hostedcluster"},
		baseline.NodePool:                  {"hypershift.openshift.io/v1beta1", "nodepool"},
	}
}

func objectOf(key baseline.Key) finding.Object {
	return finding.Object{APIVersion: resources()[key.Kind].version, Kind: string(key.Kind), Namespace: key.Namespace, Name: key.Name}
}

// commandOf shows the object, or for a key that names no object, all of its kind.
func inspect(key baseline.Key) finding.Action {
	plural := resources()[key.Kind].plural
	var made finding.Action
	switch key.Kind { //nolint:exhaustive // the others are shown by their name
	case baseline.Alert:
		alert, _, _ := strings.Cut(key.Name, "/")
		return finding.Read("oc get prometheusrules -A -o yaml | grep -A 20 -F %s", "alert: "+alert)
	case baseline.VolumeAttachment, baseline.ClusterServiceVersion:
		made = finding.Read("oc get %s", plural)
	case baseline.CertificateSigningRequest:
		made = finding.Read("oc get certificatesigningrequest %s -o yaml", key.Name)
	default:
		made = finding.Read("oc describe %s %s", plural, key.Name)
	}
	if key.Kind == baseline.HostedCluster || key.Kind == baseline.NodePool {
		made = made.In(finding.Management)
	}
	return made.Namespaced(key.Namespace)
}

// The time within which a problem follows a step that may have caused it.
const (
	afterReboot = time.Hour
	afterStep   = 30 * time.Minute
)

// stepOf is the last step before a problem began; for a problem on a node that was rebooted, that.
func stepOf(steps []settling.Step, found regression.Found, since time.Time) string {
	node := found.Problem.Node
	if found.Key.Kind == baseline.Node {
		node = found.Key.Name
	}
	nearest := ""
	for _, step := range steps {
		took := since.Sub(step.Time)
		if node != "" && step.Node == node && took.Abs() <= afterReboot {
			return step.Text
		}
		if took >= 0 && took <= afterStep {
			nearest = fmt.Sprintf("%s, %s before", step.Text, took.Round(time.Second))
		}
	}
	return nearest
}
