package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func (b *Bed) installResources(ctx context.Context) error {
	_, err := envtest.InstallCRDs(b.Config, envtest.CRDInstallOptions{
		Scheme:             b.Client.Scheme(),
		Paths:              append(b.paths.crdDirs(), b.options.CRDDirs...),
		ErrorIfPathMissing: true,
		MaxTime:            30 * time.Second,
		PollInterval:       pollInterval,
	})
	if err != nil {
		return fmt.Errorf("installing the CRDs: %w", err)
	}
	return b.grantManager(ctx)
}

// CreateNamespace makes a namespace, unless it is there already.
func (b *Bed) CreateNamespace(ctx context.Context, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := b.Client.Create(ctx, ns); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	return nil
}

// grantManager gives the manager's user exactly the rights that the project's
// manifests give its service account, so that a missing right shows here first.
func (b *Bed) grantManager(ctx context.Context) error {
	objects, err := readManifests(b.options.ManagerRBAC)
	if errors.Is(err, os.ErrNotExist) {
		return b.bindClusterRole(ctx, ManagerUser, "cluster-admin")
	}
	if err != nil {
		return fmt.Errorf("reading the manager's roles: %w", err)
	}
	bound := map[string]bool{}
	for _, object := range objects {
		switch object.GetKind() {
		case "ClusterRoleBinding", "RoleBinding":
			role, _, _ := unstructured.NestedString(object.Object, "roleRef", "name")
			bound[role] = true
			object.Object["subjects"] = []any{subject(ManagerUser)}
		case "ClusterRole", "Role":
		default:
			continue
		}
		if err := b.createRBAC(ctx, object); err != nil {
			return err
		}
	}
	// The generated role comes without a binding; it has the manager's name.
	isGenerated := func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "ClusterRole" && o.GetName() == ManagerUser
	}
	if slices.ContainsFunc(objects, isGenerated) && !bound[ManagerUser] {
		return b.bindClusterRole(ctx, ManagerUser, ManagerUser)
	}
	return nil
}

func (b *Bed) createRBAC(ctx context.Context, object *unstructured.Unstructured) error {
	if object.GetKind() == "Role" || object.GetKind() == "RoleBinding" {
		if object.GetNamespace() == "" {
			object.SetNamespace(metav1.NamespaceDefault)
		}
		if err := b.CreateNamespace(ctx, object.GetNamespace()); err != nil {
			return err
		}
	}
	if err := b.Client.Create(ctx, object); err != nil {
		return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

func (b *Bed) bindClusterRole(ctx context.Context, user, role string) error {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "testbed-" + user + "-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if err := b.Client.Create(ctx, binding); err != nil {
		return fmt.Errorf("giving %s the role %s: %w", user, role, err)
	}
	return nil
}

func subject(user string) map[string]any {
	return map[string]any{"apiGroup": rbacv1.GroupName, "kind": rbacv1.UserKind, "name": user}
}

// readManifests reads every object in the YAML files of a directory.
func readManifests(dir string) ([]*unstructured.Unstructured, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", dir, err)
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		found, err := readManifest(file)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

func readManifest(file string) ([]*unstructured.Unstructured, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(f, 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		if object.GetKind() != "" {
			objects = append(objects, object)
		}
	}
}

// create makes an object and says which one failed.
func (b *Bed) create(ctx context.Context, object client.Object) error {
	if err := b.Client.Create(ctx, object); err != nil {
		return fmt.Errorf("creating %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}
