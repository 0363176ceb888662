mod cron;
mod declaring;
mod running;
