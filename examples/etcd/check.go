package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"
	operatorclient "github.com/openshift/client-go/operator/clientset/versioned/typed/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// full is a percentage between the thresholds of the alerts etcdDatabaseQuotaLowSpace.
const timeout, full = time.Minute, 90

// members fails if a member is unavailable, because the update restarts one more.
func members(ctx context.Context, t *preflight.T) error {
	operators, err := connect(operatorclient.NewForConfig)
	if err != nil {
		return err
	}
	etcd, err := operators.Etcds().Get(ctx, "cluster", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("cannot read the status of etcd: %w", err)
	}
	for _, c := range etcd.Status.Conditions {
		if c.Type != "EtcdMembersDegraded" || c.Status == operatorv1.ConditionUnknown {
			continue
		}
		if c.Status == operatorv1.ConditionTrue {
			t.Reason("MembersDegraded")
			t.Failf("etcd does not tolerate the loss of another member: %s", c.Message)
			t.Remedyf("Wait until the member has recovered, or replace it.")
			t.Commandf("oc wait etcd.operator.openshift.io/cluster --for=condition=EtcdMembersDegraded=false --timeout=30m")
		}
		return nil
	}
	return errors.New("the condition EtcdMembersDegraded of etcds.operator.openshift.io/cluster is missing or Unknown")
}

// space fails before the database reaches its quota and etcd rejects writes.
func space(ctx context.Context, t *preflight.T) error {
	kube, err := connect(kubernetes.NewForConfig)
	if err != nil {
		return err
	}
	quota, errQuota := quotaOf(ctx, kube)
	size, errSize := sizeOf(ctx, kube)
	if err := cmp.Or(errQuota, errSize); err != nil {
		return fmt.Errorf("cannot read the size of the database: %w", err)
	}
	if percent := 100 * size / quota; percent >= full {
		t.Reason("LowSpace")
		t.Failf("the database of etcd uses %.0f%% of its quota of %.0f bytes", percent, quota)
		t.Remedyf("Delete objects of the most numerous resources, then defragment each pod of etcd.")
		t.Commandf("oc get --raw /metrics | grep ^apiserver_resource_objects")
		t.Commandf("oc exec -n openshift-etcd -c etcdctl POD -- etcdctl --command-timeout=60s --endpoints=https://localhost:2379 defrag")
	}
	return nil
}

// quotaOf returns the quota that the operator sets (cluster-etcd-operator pkg/etcdenvvar).
func quotaOf(ctx context.Context, kube kubernetes.Interface) (float64, error) {
	pods, err := kube.CoreV1().Pods("openshift-etcd").List(ctx, metav1.ListOptions{LabelSelector: "app=etcd"})
	if err != nil {
		return 0, err
	}
	for _, pod := range pods.Items {
		for _, variable := range pod.Spec.Containers[0].Env {
			if variable.Name == "ETCD_QUOTA_BACKEND_BYTES" {
				return strconv.ParseFloat(variable.Value, 64)
			}
		}
	}
	return 0, errors.New("no pod of etcd has the variable ETCD_QUOTA_BACKEND_BYTES")
}

// sizeOf returns the size of the database file, including free pages, from the metrics
// of the API server.
func sizeOf(ctx context.Context, kube kubernetes.Interface) (float64, error) {
	metrics, err := kube.Discovery().RESTClient().Get().AbsPath("/metrics").Stream(ctx)
	if err != nil {
		return 0, err
	}
	defer metrics.Close()
	lines := bufio.NewScanner(metrics)
	for lines.Scan() {
		if sample, ok := strings.CutPrefix(lines.Text(), "apiserver_storage_size_bytes{"); ok {
			return strconv.ParseFloat(sample[strings.LastIndex(sample, " ")+1:], 64)
		}
	}
	return 0, cmp.Or(lines.Err(), errors.New("the metrics of the API server do not contain apiserver_storage_size_bytes"))
}

// connect uses the same configuration as oc; in a pod, the configuration of the pod.
func connect[C any](client func(*rest.Config) (C, error)) (C, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return *new(C), fmt.Errorf("cannot load the configuration of the cluster: %w", err)
	}
	return client(config)
}
