package provider

// What a CVM instance leaves: images with their snapshots, cloud disks that do not
// end with it, and elastic addresses, which cost most while nothing uses them.

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

const tencentNameLength = 60

type tencentImage struct {
	ID    string `json:"ImageId"`
	Name  string `json:"ImageName"`
	State string `json:"ImageState"`
	Size  int64  `json:"ImageSize"`
	Of    []struct {
		ID string `json:"SnapshotId"`
	} `json:"SnapshotSet"`
}

func (t tencent) images(ctx context.Context, region string, in map[string]any) ([]tencentImage, error) {
	return tencentPages[tencentImage](ctx, t, region, "cvm", "DescribeImages", "ImageSet", in)
}

// own are the images that the account made.
func (t tencent) ownImages(ctx context.Context, region string) ([]tencentImage, error) {
	return t.images(ctx, region, tencentFilter("image-type", "PRIVATE_IMAGE"))
}

func (t tencent) named(ctx context.Context, region, name string) (Snapshot, bool, error) {
	found, err := t.ownImages(ctx, region)
	for _, im := range found {
		if im.Name == name {
			return Snapshot{ID: region + "/" + text(im.ID), Name: text(im.Name), Currency: "CNY"}, true, nil
		}
	}
	return Snapshot{}, false, err
}

// snapshot makes an image of the system disk and the data disks, without shutting
// down. The same name again is the same image.
func (t tencent) snapshot(ctx context.Context, in Instance, name string) (Snapshot, error) {
	region, own := placed(in.ID)
	name = strings.ReplaceAll(imageName(name, own, tencentNameLength), ".", "-")
	named := func() (Snapshot, bool, error) { return t.named(ctx, region, name) }
	return imaged(region, name, "CNY", named, func() (string, error) {
		disks, err := t.disks(ctx, region, tencentFilter("instance-id", own))
		if err != nil {
			return "", err
		}
		body := map[string]any{"InstanceId": own, "ImageName": name, "ImageDescription": "made by rentop before a release", "ForcePoweroff": "false"}
		if ids := dataDisks(disks); len(ids) > 0 {
			body["DataDiskIds"] = ids
		}
		var answer struct{ ImageId string }
		err = t.request(acting(ctx), region, "cvm", cvmVersion, "CreateImage", body, &answer)
		return answer.ImageId, err
	})
}

func dataDisks(disks []tencentCloudDisk) []string {
	var ids []string
	for _, d := range disks {
		if d.Usage == "DATA_DISK" {
			ids = append(ids, d.ID)
		}
	}
	return ids
}

func (t tencent) snapshotState(ctx context.Context, id string) (SnapshotState, error) {
	if why := checkPlaced(id, "img-"); why != "" {
		return SnapshotState{}, errors.New(why)
	}
	region, own := placed(id)
	found, err := t.images(ctx, region, map[string]any{"ImageIds": []string{own}})
	if err != nil {
		return SnapshotState{}, err
	}
	if len(found) != 1 || found[0].ID != own {
		return SnapshotState{}, errAbsent
	}
	s := SnapshotState{Ready: found[0].State == "NORMAL" && len(found[0].Of) > 0, Failed: strings.HasSuffix(found[0].State, "FAILED"), Detail: text(found[0].State)}
	if found[0].State == "NORMAL" && len(found[0].Of) == 0 {
		s.Failed, s.Detail = true, "NORMAL, and without the snapshot of any disk"
	}
	return s, nil
}

type tencentCloudDisk struct {
	tencentDisk
	Name  string `json:"DiskName"`
	Usage string `json:"DiskUsage"`
	Dies  *bool  `json:"DeleteWithInstance"`
}

func (t tencent) disks(ctx context.Context, region string, in map[string]any) ([]tencentCloudDisk, error) {
	return tencentPages[tencentCloudDisk](ctx, t, region, "cbs", "DescribeDisks", "DiskSet", in)
}

// leftovers are disks (all of a stopped instance, else those that outlive it),
// elastic addresses and images; once it is gone, disks and addresses that nothing
// has. The API tells no price of what is there already.
func (t tencent) leftovers(ctx context.Context, in Instance, after State) ([]Leftover, error) {
	region, own := placed(in.ID)
	gone := in.Status.State == Gone
	var list []Leftover
	add := func(kind, id, name, note string) {
		list = append(list, Leftover{Kind: kind, ID: region + "/" + text(id), Name: text(name), Currency: "CNY", Note: text(note)})
	}
	if in.Status.State == Stopped && after == Stopped && *in.Status.Billed {
		add("instance", own, in.Name, "the whole of it: its stop did not end the charge ("+in.Status.Detail+")")
	}
	which, where := tencentFilter("instance-id", own), tencentFilter("instance-id", own)
	if gone {
		which, where = tencentFilter("disk-state", "UNATTACHED"), tencentFilter("address-status", "UNBIND")
	}
	disks, err := t.disks(ctx, region, which)
	if err != nil {
		return nil, err
	}
	for _, d := range disks {
		size := fmt.Sprintf("%d GB %s", d.Size, d.Type)
		switch {
		case gone:
			add("volume", d.ID, d.Name, size+", on no instance")
		case d.Usage != "SYSTEM_DISK" && (d.Dies == nil || !*d.Dies):
			add("volume", d.ID, d.Name, size+", not deleted with the instance")
		case after == Stopped:
			add("disk", d.ID, d.Name, size)
		}
	}
	ips, err := tencentPages[struct {
		ID string `json:"AddressId"`
		IP string `json:"AddressIp"`
	}](ctx, t, region, "vpc", "DescribeAddresses", "AddressSet", where)
	if err != nil {
		return nil, err
	}
	for _, ip := range ips {
		if gone {
			add("ip", ip.ID, ip.IP, "elastic address, on nothing")
		} else {
			add("ip", ip.ID, ip.IP, "elastic address, kept until it is released, and dearer while nothing uses it")
		}
	}
	images, err := t.ownImages(ctx, region)
	if err != nil {
		return nil, err
	}
	for _, im := range images {
		if strings.HasSuffix(im.Name, "-"+own) {
			add("image", im.ID, im.Name, fmt.Sprintf("%d GB, by its snapshots", im.Size))
		}
	}
	return list, nil
}
