// node-postgres: parameters, types, prepared statements, pools, transactions, errors.
"use strict";

const assert = require("node:assert/strict");
const { Client, Pool, types } = require("pg");

const url = process.argv[2];
const features = [];
const feature = (name, check) => features.push([name, check]);

async function connected(work) {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

feature("values", () =>
  connected(async (client) => {
    await client.query(
      "create table v (a int primary key, b bigint, c numeric, d text, e bytea, f boolean, g jsonb, h text[]," +
        " i timestamptz, j double precision, k uuid)",
    );
    const moment = new Date(Date.UTC(2024, 1, 29, 12));
    const given = [1, "9007199254740993", "1.50", "é'\\", Buffer.from([0, 255]), true, { x: [1, null] }, ["a", "b,c"]];
    given.push(moment, 0.1, "00000000-0000-0000-0000-000000000007");
    const marks = given.map((_, position) => `$${position + 1}`).join(", ");
    await client.query(`insert into v values (${marks})`, given);
    const { rows, fields } = await client.query("select * from v where a = $1", [1]);
    assert.deepEqual(Object.values(rows[0]), given);
    assert.equal(fields[6].dataTypeID, types.builtins.JSONB);
  }),
);

feature("prepared statements", () =>
  connected(async (client) => {
    for (let number = 0; number < 10; number++) {
      const query = { name: "double", text: "select $1::int * 2 as n", values: [number], rowMode: "array" };
      assert.deepEqual((await client.query(query)).rows, [[number * 2]]);
    }
  }),
);

feature("binary results", () =>
  connected(async (client) => {
    const found = await client.query({ text: "select 7::int as n, 'x'::text as t", values: [], binary: true });
    assert.deepEqual(found.rows, [{ n: 7, t: "x" }]);
  }),
);

feature("several statements", () =>
  connected(async (client) => {
    const found = await client.query("select 1 as a; select 2 as b");
    assert.deepEqual(found.map((each) => each.rows), [[{ a: 1 }], [{ b: 2 }]]);
  }),
);

feature("transactions in a pool", async () => {
  const pool = new Pool({ connectionString: url, max: 4 });
  try {
    await pool.query("create table s (id int primary key)");
    const insert = async (number) => {
      const client = await pool.connect();
      try {
        await client.query("begin");
        await client.query("insert into s values ($1)", [number]);
        await client.query(number % 2 ? "commit" : "rollback");
      } finally {
        client.release();
      }
    };
    await Promise.all([...Array(20).keys()].map(insert));
    const { rows } = await pool.query("select count(*)::int as n from s");
    assert.deepEqual(rows, [{ n: 10 }]);
  } finally {
    await pool.end();
  }
});

feature("errors", () =>
  connected(async (client) => {
    await client.query("create table e (id int primary key, n int constraint positive check (n > 0))");
    await assert.rejects(client.query("insert into e values (1, $1)", [-1]), { code: "23514", constraint: "positive" });
    await assert.rejects(client.query("select * from nowhere"), { code: "42P01" });
    assert.equal((await client.query("select 1")).rowCount, 1);
  }),
);

feature("notices", () =>
  connected(async (client) => {
    const told = [];
    client.on("notice", (notice) => told.push(notice.message));
    await client.query("drop table if exists nothing");
    assert.deepEqual(told, ['table "nothing" does not exist, skipping']);
  }),
);

async function main() {
  for (const [name, check] of features) {
    let problem = "";
    try {
      await check();
    } catch (error) {
      console.error(error);
      problem = `${error}`.split(/\s+/).join(" ").slice(0, 300);
    }
    console.log(JSON.stringify({ feature: name, problem }));
  }
}

main();
