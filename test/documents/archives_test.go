package documents_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/archive/layout"
	"github.com/openshift/update-preflight/collector/builtin"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
)

const archives = "cmd/oc-preflight/ARCHIVES.md"

// extent is how much of what a check reads an archive has, the least first.
type extent int

const (
	absent extent = iota
	partial
	complete
)

func (e extent) String() string { return [...]string{"absent", "partial", "complete"}[e] }

// content is what two kinds of archives have of a resource.
type content struct{ mustGather, insights extent }

// contents are those of all resources that checks read, by what has them gathered: the script of
// must-gather (openshift/must-gather collection-scripts/gather), the related objects of the
// ClusterOperators, and the gatherers of the insights-operator (docs/gathered-data.md).
func contents() map[string]content {
	return map[string]content{
		// "oc adm inspect clusteroperators" writes all of config.openshift.io as lists.
		"clusterversions.config.openshift.io":  {complete, complete},
		"clusteroperators.config.openshift.io": {complete, complete},
		"infrastructures.config.openshift.io":  {complete, complete},
		"networks.config.openshift.io":         {complete, complete},
		"nodes.config.openshift.io":            {complete, absent},
		// All of a namespace that was gathered: those of the platform and of webhooks. The
		// insights-operator has the pods of operators that are not healthy, and 100 budgets of
		// openshift-*.
		"pods": {partial, partial}, "poddisruptionbudgets.policy": {partial, partial}, "namespaces": {partial, absent},
		"services": {partial, absent}, "endpointslices.discovery.k8s.io": {partial, absent},
		"daemonsets.apps": {partial, absent}, "deployments.apps": {partial, absent}, "statefulsets.apps": {partial, absent},
		"cronjobs.batch":   {partial, absent},
		"replicasets.apps": {partial, absent}, "replicationcontrollers": {partial, absent}, "jobs.batch": {partial, absent},
		"persistentvolumeclaims": {partial, absent},
		// ConfigMaps of openshift-config and -managed: kube-apiserver relates to both namespaces. The
		// insights-operator writes a file for each key, so an empty ConfigMap leaves no trace.
		"configmaps": {complete, absent},
		// machine-config relates to them.
		"nodes":                              {complete, complete},
		"machineconfigpools." + mco:          {complete, complete},
		"machineconfigurations." + operators: {absent, absent},
		// The operators relate to their own objects.
		"networks." + operators: {complete, absent}, "kubeapiservers." + operators: {complete, absent},
		"openshiftapiservers." + operators: {complete, absent},
		"authentications." + operators:     {complete, absent}, "etcds." + operators: {complete, absent},
		"kubestorageversionmigrators." + operators: {complete, absent},
		"configs.imageregistry." + operators:       {complete, absent}, "storageversionmigrations.migration.k8s.io": {complete, absent},
		"machineconfigs." + mco: {complete, absent},
		// Operators relate to most of their own kinds, and to no others of their groups.
		"*.apiextensions.openshift.io": {absent, absent}, "*.cloud.network.openshift.io": {partial, absent},
		"*.cloudcredential.openshift.io": {partial, absent}, "*.config.openshift.io": {complete, absent},
		"*.controlplane." + operators: {partial, absent}, "*.etcd.openshift.io": {partial, absent}, "*.helm.openshift.io": {partial, absent},
		"*.imageregistry." + operators: {partial, absent},
		"*.ingress." + operators:       {partial, absent}, "*.insights.openshift.io": {partial, absent},
		"*.machine.openshift.io": {partial, absent},
		"*." + mco:               {partial, absent},
		"*.metal3.io":            {partial, absent}, "*.monitoring.coreos.com": {partial, absent}, "*.monitoring.openshift.io": {partial, absent},
		"*.network.openshift.io": {partial, absent},
		"*.network." + operators: {partial, absent}, "*." + operators: {partial, absent}, "*.samples." + operators: {partial, absent},
		"*.route.openshift.io":          {partial, absent},
		"*.sharedresource.openshift.io": {absent, absent}, "*.tuned.openshift.io": {partial, absent},
		"kubeletconfigs." + mco: {partial, absent}, "containerruntimeconfigs." + mco: {partial, absent},
		"imagedigestmirrorsets.config.openshift.io": {complete, absent}, "imagetagmirrorsets.config.openshift.io": {complete, absent},
		"imagecontentsourcepolicies." + operators: {partial, absent},
		"networkpolicies.networking.k8s.io":       {partial, absent}, "securitycontextconstraints.security.openshift.io": {partial, absent},
		// One object, which is read where a pool has runc and no stream of its own.
		"osimagestreams." + mco: {partial, absent},
		// machine-api relates to them, in its own namespace.
		"machinesets.machine.openshift.io": {complete, complete}, "machines.machine.openshift.io": {partial, absent},
		"machinehealthchecks.machine.openshift.io": {partial, absent},
		// kube-apiserver relates to them.
		"apirequestcounts.apiserver.openshift.io":                      {complete, absent},
		"customresourcedefinitions.apiextensions.k8s.io":               {complete, partial},
		"mutatingwebhookconfigurations.admissionregistration.k8s.io":   {complete, complete},
		"validatingwebhookconfigurations.admissionregistration.k8s.io": {complete, complete},
		// kube-controller-manager relates to them.
		"certificatesigningrequests.certificates.k8s.io": {partial, partial},
		// The script names them: gather_olm and, since 2024, gather.
		"clusterserviceversions.operators.coreos.com": {complete, absent},
		// gather_olm writes a file for each, and nothing shows that there is none.
		"subscriptions.operators.coreos.com": {partial, absent}, "catalogsources.operators.coreos.com": {partial, absent},
		"flowschemas." + flowControl: {complete, absent}, "prioritylevelconfigurations." + flowControl: {complete, absent},
		// The storage operator relates to some of them.
		"csidrivers.storage.k8s.io": {partial, absent}, "storageclasses.storage.k8s.io": {partial, absent},
		"csinodes.storage.k8s.io": {partial, absent},
		// Nothing relates to all of them.
		"runtimeclasses.node.k8s.io": {absent, absent}, "clusterresourcequotas.quota.openshift.io": {absent, absent},
		"clusterautoscalers.autoscaling.openshift.io": {partial, absent}, "machineautoscalers.autoscaling.openshift.io": {partial, absent},
		"egressips.k8s.ovn.org": {absent, absent}, "keepalivedgroups.redhatcop.redhat.io": {absent, absent},
		"l2advertisements.metallb.io": {absent, absent},
		"persistentvolumes":           {absent, absent}, "serviceaccounts": {absent, absent}, "resourcequotas": {absent, absent},
		"limitranges": {absent, absent}, "priorityclasses.scheduling.k8s.io": {absent, absent},
		"apiservices.apiregistration.k8s.io":                             {partial, absent},
		"validatingadmissionpolicies.admissionregistration.k8s.io":       {absent, absent},
		"validatingadmissionpolicybindings.admissionregistration.k8s.io": {absent, absent},
		// The CustomResourceDefinitions of a must-gather prove that a cluster does not have them.
		"upgradeconfigs.upgrade.managed.openshift.io": {absent, absent},
		"virtualmachineinstances.kubevirt.io":         {absent, absent}, "kubevirts.kubevirt.io": {absent, absent},
		"clusters.postgresql.cnpg.io": {absent, absent},
	}
}

const (
	mco         = "machineconfiguration.openshift.io"
	operators   = "operator.openshift.io"
	flowControl = "flowcontrol.apiserver.k8s.io"
)

// metrics is what archives have for the checks that read the monitoring: alerts, and no results of
// PromQL.
func metrics() map[string]content {
	return map[string]content{"Alerts": {complete, complete}, "ClusterVersionRecommendedUpdate": {partial, partial}}
}

// ofCheck is the least of what the check reads.
func ofCheck(t *testing.T, name string, reads []access.Request) content {
	t.Helper()
	least := content{complete, complete}
	for _, request := range reads {
		resource := strings.TrimSuffix(request.Resource+"."+request.Group, ".")
		of, known := contents()[resource]
		if other, ok := metrics()[name]; ok {
			of, known = other, true
		}
		if name == "RemovedAPI" && request.Resource != "apirequestcounts" { // they name the owners of clients
			of = content{max(of.mustGather, partial), max(of.insights, partial)}
		}
		if name == "Drain" && request.Resource != "nodes" { // a budget that refuses an eviction is certain without the rest
			of = content{max(of.mustGather, partial), max(of.insights, partial)}
		}
		if !known {
			t.Errorf("check %s reads %s, of which the test does not know whether archives have it", name, resource)
		}
		least = content{min(least.mustGather, of.mustGather), min(least.insights, of.insights)}
	}
	return least
}

// TestArchives writes which checks can be evaluated on which kind of archive: a row for those that are alike.
func TestArchives(t *testing.T) {
	alike := map[[3]extent][]string{}
	for _, c := range builtin.Checks(scene.Judgement{}) {
		if len(c.Reads) == 0 {
			continue
		}
		of := ofCheck(t, c.Name, c.Reads)
		collected := complete // collect gathers what checks read
		if len(c.IfPermitted) > 0 {
			collected, of.insights = absent, absent // and no Secrets
		}
		kind := [3]extent{of.mustGather, of.insights, collected}
		alike[kind] = append(alike[kind], "`"+c.Name+"`")
	}
	rows := [][]string{{"default must-gather", "insights", "collect", "checks"}}
	for _, kind := range slices.SortedFunc(maps.Keys(alike), func(a, b [3]extent) int { return slices.Compare(b[:], a[:]) }) {
		names := alike[kind]
		slices.Sort(names)
		rows = append(rows, []string{kind[0].String(), kind[1].String(), kind[2].String(), strings.Join(names, ", ")})
	}
	expectGenerated(t, archives, "archives", table(rows...))
}

// TestInsightsContents compares the table with what the reader takes as complete.
func TestInsightsContents(t *testing.T) {
	read := map[string]bool{}
	for place := range layout.Complete() {
		read[strings.TrimSuffix(place.Resource+"."+place.Group, ".")] = true
	}
	for name, of := range contents() {
		if read[name] != (of.insights == complete) {
			t.Errorf("%s: the reader takes it as complete: %t, the table has %s", name, read[name], of.insights)
		}
	}
}

// TestMustGatherContents fails for a check that the example, a must-gather, leaves open though the
// table has it as complete.
func TestMustGatherContents(t *testing.T) {
	var printed, failed bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &printed, ErrOut: &failed}
	command.Execute(t.Context(), []string{
		"/usr/local/bin/oc-preflight", "targets", "--archive", filepath.Join(root, "examples/archive"),
		"--to", "4.19.1", "-o", "json",
	}, streams)
	var judged report.Targets
	if err := json.Unmarshal(printed.Bytes(), &judged); err != nil {
		t.Fatalf("%v: %s", err, failed.String())
	}
	open := 0
	for _, f := range judged.Findings {
		if f.Reason != "NotInArchive" {
			continue
		}
		for name := range strings.SplitSeq(f.Evidence["checks"], ", ") {
			open++
			for _, c := range builtin.Checks(scene.Judgement{}) {
				if c.Name == name && ofCheck(t, name, c.Reads).mustGather == complete {
					t.Errorf("%s is open, and the table has it as complete: %s", name, f.Message)
				}
			}
		}
	}
	if open == 0 {
		t.Error("a must-gather leaves checks open")
	}
}
