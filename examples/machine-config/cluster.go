package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/pager"
)

// pageSize is small because a rendered machine config may have a megabyte.
const pageSize = 10

// connect uses the same configuration as oc; in a pod, the configuration of the pod.
func connect() (dynamic.Interface, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot load the configuration of the cluster: %w", err)
	}
	return dynamic.NewForConfig(config)
}

func resource(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "machineconfiguration.openshift.io", Version: "v1", Resource: plural}
}

// eachMachineConfig calls visit for every machine config. It lists them in pages.
func eachMachineConfig(ctx context.Context, client dynamic.Interface, visit func(*unstructured.Unstructured)) error {
	pages := pager.New(pager.SimplePageFunc(func(page metav1.ListOptions) (runtime.Object, error) {
		return client.Resource(resource("machineconfigs")).List(ctx, page)
	}))
	pages.PageSize, pages.PageBufferSize = pageSize, 1
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		mc, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("unexpected %T in the list", item)
		}
		visit(mc)
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot list machine configs: %w", err)
	}
	return nil
}

// ignitionOf returns the version of the Ignition config in mc; empty if the config has
// none. ok is false if mc has no config, such as one that only sets kernel arguments.
func ignitionOf(mc *unstructured.Unstructured) (version string, ok bool) {
	config, _, err := unstructured.NestedFieldNoCopy(mc.Object, "spec", "config")
	if fields, isMap := config.(map[string]any); err == nil && (config == nil || isMap && len(fields) == 0) {
		return "", false
	}
	version, _, _ = unstructured.NestedString(mc.Object, "spec", "config", "ignition", "version")
	return version, true
}

// machineConfigPool contains the machine configs of a pool: the desired and the current
// ones.
type machineConfigPool struct {
	Spec   machineConfigPoolState `json:"spec"`
	Status machineConfigPoolState `json:"status"`
}

type machineConfigPoolState struct {
	Configuration struct {
		// Name is the rendered machine config, Source are the ones it consists of.
		Name   string                   `json:"name"`
		Source []corev1.ObjectReference `json:"source"`
	} `json:"configuration"`
}

// poolsByConfig returns the pool that uses a machine config, by its name.
func poolsByConfig(ctx context.Context, client dynamic.Interface) (map[string]string, error) {
	list, err := client.Resource(resource("machineconfigpools")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot list machine config pools: %w", err)
	}
	pools := map[string]string{}
	for _, item := range list.Items {
		var pool machineConfigPool
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &pool); err != nil {
			return nil, fmt.Errorf("cannot read MachineConfigPool %s: %w", item.GetName(), err)
		}
		for _, state := range []machineConfigPoolState{pool.Spec, pool.Status} {
			pools[state.Configuration.Name] = item.GetName()
			for _, source := range state.Configuration.Source {
				pools[source.Name] = item.GetName()
			}
		}
	}
	return pools, nil
}
