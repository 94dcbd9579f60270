package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// upgradeableTo is the annotation by which an administrator acknowledges that the
// permissions for a version are granted.
const upgradeableTo = "cloudcredential.openshift.io/upgradeable-to"

// cluster is the state that the checks read.
type cluster struct {
	kube      kubernetes.Interface
	openshift dynamic.Interface
	// mode determines whether the administrator provides the credentials; platform is
	// the cloud.
	mode, platform string
	// upgradeableTo is the value of the annotation.
	upgradeableTo string
}

// connect uses the same configuration as oc; in a pod, the configuration of the pod.
func connect(ctx context.Context) (*cluster, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot load the configuration of the cluster: %w", err)
	}
	c := &cluster{}
	if c.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if c.openshift, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}

	operator, err := c.singleton(ctx, "operator.openshift.io", "cloudcredentials")
	if err != nil {
		return nil, err
	}
	infrastructure, err := c.singleton(ctx, "config.openshift.io", "infrastructures")
	if err != nil {
		return nil, err
	}
	c.mode, _, _ = unstructured.NestedString(operator.Object, "spec", "credentialsMode")
	c.platform, _, _ = unstructured.NestedString(infrastructure.Object, "status", "platformStatus", "type")
	c.upgradeableTo = operator.GetAnnotations()[upgradeableTo]
	return c, nil
}

// singleton returns the configuration object of a resource.
func (c *cluster) singleton(ctx context.Context, group, plural string) (*unstructured.Unstructured, error) {
	resource := schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}
	object, err := c.openshift.Resource(resource).Get(ctx, "cluster", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	return object, nil
}

// granted returns the cluster's request of the same name, for which the administrator
// granted permissions. It is empty if the target's request is new.
func (c *cluster) granted(ctx context.Context, wanted request) (request, error) {
	resource := schema.GroupVersionResource{Group: "cloudcredential.openshift.io", Version: "v1", Resource: "credentialsrequests"}
	object, err := c.openshift.Resource(resource).Namespace(wanted.Namespace).Get(ctx, wanted.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return request{}, nil
	case err != nil:
		return request{}, fmt.Errorf("cannot read the granted permissions: %w", err)
	}
	var r request
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &r); err != nil {
		return request{}, fmt.Errorf("cannot read the granted permissions: CredentialsRequest %s: %w", wanted.Name, err)
	}
	return r, r.validate()
}

// secretViolation returns why the Secret has no credentials for AWS; empty if it has: a
// config file, as ccoctl creates it, or an access key.
func (c *cluster) secretViolation(ctx context.Context, ref corev1.SecretReference) (string, error) {
	secret, err := c.kube.CoreV1().Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "does not exist", nil
	case err != nil:
		return "", fmt.Errorf("cannot read the credentials: %w", err)
	}
	has := func(key string) bool { return len(secret.Data[key]) > 0 }
	if has("credentials") || has("aws_access_key_id") && has("aws_secret_access_key") {
		return "", nil
	}
	return "has neither credentials nor aws_access_key_id and aws_secret_access_key", nil
}
