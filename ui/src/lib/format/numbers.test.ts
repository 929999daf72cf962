import { describe, expect, it } from "vitest";
import {
  bytes,
  bytesPerSecond,
  clock,
  count,
  deviation,
  flopsPerSecond,
  machineMemory,
  memory,
  parameters,
  percent,
  significant,
  speed,
  speedWithUnit,
  whole,
} from "./numbers";

/** With plain spaces, to be read; that there is no other space is tested apart. */
const plain = (text: string): string => text.replaceAll("\u00a0", " ");

describe("numbers", () => {
  it.each([
    [0, "0"],
    [0.012, "0.012"],
    [0.0994, "0.099"],
    [0.0996, "0.10"],
    [0.84, "0.84"],
    [0.999, "1.00"],
    [7.05, "7.05"],
    [9.994, "9.99"],
    [9.995, "10.0"],
    [79.6, "79.6"],
    [99.94, "99.9"],
    [99.95, "100"],
    [107.2, "107"],
    [612, "612"],
    [999.6, "1,000"],
    [12345.6, "12,346"],
  ])("writes %d with three significant digits: %s", (value, written) => {
    expect(significant(value)).toBe(written);
  });

  it.each([
    [0, "0 B"],
    [999, "999 B"],
    [999.5, "1.0 kB"],
    [9_949, "9.9 kB"],
    [9_950, "10 kB"],
    [999_499, "999 kB"],
    [999_500, "1.0 MB"],
    [9_949_999, "9.9 MB"],
    [98_000_000, "98 MB"],
    [999_499_999, "999 MB"],
    [999_500_000, "1.0 GB"],
    [12_110_000_000, "12.1 GB"],
    [999_949_999_999, "999.9 GB"],
    [999_950_000_000, "1.00 TB"],
  ])("writes %d bytes in powers of ten: %s", (value, written) => {
    expect(plain(bytes(value))).toBe(written);
  });

  it("writes memory in GB, and what is too small for that in MB", () => {
    expect(plain(memory(300_000_000))).toBe("0.3 GB");
    expect(plain(memory(50_000_000))).toBe("0.1 GB");
    expect(plain(memory(49_999_999))).toBe("50 MB");
    expect(plain(machineMemory(24_000_000_000))).toBe("24 GB");
    expect(plain(machineMemory(25_200_000_000))).toBe("25.2 GB");
  });

  it.each([
    [18_000_000_000, "18.0 GB/s"],
    [99_940_000_000, "99.9 GB/s"],
    [99_950_000_000, "100 GB/s"],
    [819_200_000_000, "819 GB/s"],
    [999_499_999, "999 MB/s"],
    [999_500_000, "1.0 GB/s"],
  ])("writes %d bytes per second: %s", (value, written) => {
    expect(plain(bytesPerSecond(value))).toBe(written);
  });

  it.each([
    [0, "0 %"],
    [0.0004, "under 0.1 %"],
    [0.0005, "0.1 %"],
    [0.038, "3.8 %"],
    [0.0994, "9.9 %"],
    [0.0995, "10 %"],
    [0.57, "57 %"],
    [1.06, "106 %"],
    [-0.031, "-3.1 %"],
  ])("writes a share of %d: %s", (value, written) => {
    expect(plain(percent(value))).toBe(written);
  });

  it.each([
    [999, "999"],
    [1_000, "1 K"],
    [999_499, "999 K"],
    [999_500, "1 M"],
    [134_515_008, "135 M"],
    [999_499_999, "999 M"],
    [999_500_000, "1 B"],
    [30_532_122_624, "30.5 B"],
    [99_949_999_999, "99.9 B"],
    [671_026_000_000, "671 B"],
  ])("writes %d parameters: %s", (value, written) => {
    expect(plain(parameters(value))).toBe(written);
  });

  it("writes a deviation with the decimals of its mean, and none for one sample", () => {
    expect(plain(deviation(22.4, 612))).toBe("± 22");
    expect(plain(deviation(2.61, 79.6))).toBe("± 2.6");
    expect(plain(deviation(0.123, 7.05))).toBe("± 0.12");
    expect(plain(deviation(0.3, 612))).toBe("± 0.30");
    expect(deviation(null, 612)).toBe("");
  });

  it("never writes what is unknown as zero", () => {
    for (const nothing of [null, undefined, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(speed(nothing)).toBe("not measured");
      expect(speedWithUnit(nothing)).toBe("not measured");
      expect(bytesPerSecond(nothing)).toBe("not measured");
      for (const write of [whole, bytes, memory, machineMemory, percent, parameters, clock])
        expect(write(nothing)).toBe("unknown");
    }
  });

  it("keeps numbers and units together by a no-break space", () => {
    const all = [bytes(98e6), bytesPerSecond(18e9), percent(0.5), parameters(135e6), clock(2.1e9)];
    for (const written of [...all, count(3, "test"), speedWithUnit(612)])
      expect(written).not.toContain(" ");
  });

  it("counts one thing and more of them", () => {
    expect(plain(count(1, "model"))).toBe("1 model");
    expect(plain(count(1902, "file"))).toBe("1,902 files");
    expect(plain(count(2, "match", "matches"))).toBe("2 matches");
  });
});

it.each([
  [412e9, "412 GFLOP/s"],
  [999.4e9, "999 GFLOP/s"],
  [999.5e9, "1.00 TFLOP/s"],
  [1.31e12, "1.31 TFLOP/s"],
  [null, "not measured"],
])("%d operations a second are %s", (value, written) => {
  expect(plain(flopsPerSecond(value))).toBe(written);
});
